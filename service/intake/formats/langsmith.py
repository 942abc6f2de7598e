"""LangSmith runs: one run, with or without `child_runs`, or `runs`, the API's list of all runs of a trace.

Runs of the type `llm` are the exchanges with a model; those of the type `tool` are tool runs. Without any model run,
the outermost run is the exchange: an agent's outputs may be its messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, NotRequired

from pydantic import JsonValue, with_config
from typing_extensions import TypedDict

from service.core.json.members import JsonObject, find_object, find_text, list_objects, read_type
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.format import Format
from service.intake.shapes import OPEN, Loose
from service.intake.unread_parts.members import note_losses, note_unread_value
from service.intake.wrapping import Exchange, ToolRun, WrapperContents, list_other_members


@with_config(OPEN)
class LangSmithTrace(TypedDict):
    """A run, or all `runs` of a trace."""

    format: Literal["langsmith"]
    id: NotRequired[str | None]
    runs: NotRequired[list[dict[str, Loose]]]
    run_type: NotRequired[str | None]
    inputs: NotRequired[Loose]
    outputs: NotRequired[Loose]
    child_runs: NotRequired[list[dict[str, Loose]] | None]


PARSED_MEMBERS = ("inputs", "outputs", "runs", "child_runs")
TYPES = frozenset({"chain", "llm", "tool", "retriever", "embedding", "prompt", "parser"})


class LangSmithRun(NamedTuple):
    """A run and its pointer."""

    raw: JsonObject
    path: str


def read(record: LangSmithTrace) -> WrapperContents:
    """Read the exchanges of a validated record. Raises InputError: runs of several traces."""
    listed = record.get("runs")
    root = LangSmithRun(record, "")  # pyright: ignore[reportArgumentType] (a validated record is JSON)
    starts = [root] if listed is None else [LangSmithRun(run, f"/runs/{index}") for index, run in enumerate(listed)]
    if len({read_type(run.raw, "trace_id") for run in starts}) > 1:
        raise InputError.at("/runs", "expected the runs of one trace, not of several")
    runs = sorted((run for start in starts for run in _walk(start)), key=_read_start)
    notes = Transcript()
    note_losses(notes, record, "", PARSED_MEMBERS)
    for run in runs:
        note_losses(notes, run.raw, run.path, PARSED_MEMBERS)
        if read_type(run.raw, "run_type") not in TYPES:
            note_unread_value(notes, run.raw, run.path, "a run of an unknown type")
    models = [_build_exchange(run) for run in runs if run.raw.get("run_type") == "llm"]
    tools = [ToolRun(find_text(run.raw, "name") or "", run.path) for run in runs if run.raw.get("run_type") == "tool"]
    extra_values = [
        (run.raw.get(name), f"{run.path}/{name}")
        for run in runs
        if run.raw.get("run_type") != "llm"
        for name in ("inputs", "outputs")
    ]
    entries = runs if listed is None else [root, *runs]
    packed_values = [one for run in entries for one in list_other_members(run.raw, run.path, *PARSED_MEMBERS)]
    named = record.get("id") or next((find_text(run.raw, "trace_id") for run in runs), None)
    return WrapperContents(
        models or [_build_exchange(run) for run in _find_outermost(runs)],
        tools,
        named,
        notes,
        extra_values,
        packed_values,
    )


def _walk(run: LangSmithRun) -> Iterator[LangSmithRun]:
    """Iterate over a run and those below it, in the order in which they stand."""
    pending = [run]
    while pending:
        here = pending.pop()
        yield here
        below = [
            LangSmithRun(child, f"{here.path}/child_runs/{n}")
            for n, child in enumerate(list_objects(here.raw.get("child_runs")))
        ]
        pending += reversed(below)


def _read_start(run: LangSmithRun) -> str:
    return find_text(run.raw, "start_time", "dotted_order") or ""


def _find_outermost(runs: Sequence[LangSmithRun]) -> Sequence[LangSmithRun]:
    ids = {named for run in runs if (named := find_text(run.raw, "id"))}
    return [run for run in runs if find_text(run.raw, "parent_run_id") not in ids][:1]


def _build_exchange(run: LangSmithRun) -> Exchange:
    raw, path = run
    inputs: JsonValue = raw.get("inputs")
    parameters = find_object(find_object(raw, "extra"), "invocation_params")
    at = f"{path}/extra/invocation_params/tools"
    return Exchange(
        inputs,
        f"{path}/inputs",
        raw.get("outputs"),
        f"{path}/outputs",
        parameters.get("tools"),
        at,
        error_path=f"{path}/error" if raw.get("error") else "",
    )


def _recognise(record: JsonObject) -> bool:
    return any("run_type" in run for run in (record, *list_objects(record.get("runs"))))


FORMAT = Format(LangSmithTrace, read, _recognise, rank=16, hint="a run_type, or runs that have one", place=21)
