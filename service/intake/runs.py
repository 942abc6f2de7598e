"""Read logs of runs: entries of models, tools and chains, each with its input and output, as tracing tools write them.

Entries of models are the exchanges; those of tools are tool runs. Without any model's entry, the outermost one is the
exchange: an agent's output may be its messages. All else may repeat calls of the conversation; those that do not are
unread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from service.core.json.pointers import escape_token
from service.intake.build import Transcript
from service.intake.cursor import Cursor
from service.intake.texts import parse_text
from service.intake.unread_parts.leftovers import Rest
from service.intake.unread_parts.members import clip
from service.intake.wrapping import Exchange, ToolRun, WrapperContents

Located = tuple[JsonValue, str]
"""A value and its pointer."""
NOTHING: Located = (None, "")


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """One entry of a log."""

    node: Cursor
    kind: str
    """What it is of, as the log names it."""
    input: Located
    output: Located
    start: str | float
    """When it started, comparable within a log."""
    outermost: bool
    """Whether no other entry is around it."""
    name: str
    tools: Located = NOTHING
    """The tools on offer."""
    error_path: str = ""
    """Pointer of what says that it failed; "" if it did not."""


_MODELS = frozenset({"llm", "chat_model", "generation"})
_TOOLS = frozenset({"tool", "function"})


def read_log(
    out: Transcript,
    runs: Sequence[LoggedRun],
    trace_id: str | None,
    *,
    others: Sequence[Cursor] = (),
    whole: Sequence[Cursor] = (),
) -> WrapperContents:
    """Return what a log holds.

    `others`: more nodes whose members may repeat calls; `whole`: nodes whose members belong together, such as attributes
    under dotted keys.
    """
    runs = sorted(runs, key=lambda run: run.start)  # pyright: ignore[reportArgumentType] (all texts, or all numbers)
    models = [run for run in runs if run.kind.lower() in _MODELS] or [run for run in runs if run.outermost][:1]
    extra = [value for run in runs if run not in models for value in (run.input, run.output) if value[0] is not None]
    packed = [one for node in [*others, *[run.node for run in runs]] for one in _take_rest(node)]
    packed += [({name: node.take(name) for name in node.list_untaken()}, node.path) for node in whole]
    return WrapperContents(
        [Exchange(*run.input, *run.output, *run.tools, error_path=run.error_path) for run in models],
        [ToolRun(run.name, run.node.path) for run in runs if run.kind.lower() in _TOOLS],
        trace_id,
        out,
        extra,
        packed,
    )


def _take_rest(node: Cursor) -> list[Located]:
    """Take what was not read of an entry and return it; signs in it that something was lost are left."""
    rest: list[Located] = []
    for name in node.list_untaken():
        value, path = node.take(name), f"{node.path}/{escape_token(name)}"
        rest.append((value, path))
        if value:
            node.out.leave(Rest(value, path, f"the member {clip(name)!r}", name, calls=False))
    return rest


def locate(node: Cursor, *names: str) -> Located:
    """Take the first of these members that is there, decoded where it is JSON text; null if none is. Adds its pointer."""
    name = next((name for name in names if name in node), names[0])
    return parse_text(node.take(name)), f"{node.path}/{escape_token(name)}"
