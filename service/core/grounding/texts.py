"""Ground every text of a trace that follows a call: the origin of each value, what is proved against it, what is suspected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.grounding.actions import find_own_actions
from service.core.grounding.clock import find_reference_date
from service.core.grounding.derive import Deriver
from service.core.grounding.fact_index import FactIndex
from service.core.grounding.fact_store import MAX_FACTS
from service.core.grounding.facts import Source
from service.core.grounding.false_actions import find_completion_after_error, find_false_actions
from service.core.grounding.findings import TextFinding, find_other_values, find_scale_slips, find_slips
from service.core.grounding.ground import Grounded, Placed, ground_text
from service.core.grounding.reading.mentions import Mention
from service.core.grounding.reading.values import MAX_TEXT_CHARS, find_values
from service.core.json.walk import list_leaves
from service.core.results.structure import has_media, iter_bodies, read_text
from service.core.trace import Message, Step, ToolDef, Trace

MAX_MENTIONS_OF_ALL = 10_000
"""Once a trace's texts have had more values than this looked up, the remaining texts are not looked at."""


class GroundedText(NamedTuple):
    """One assistant text that follows a call. `too_long` says why it was not read, or is ""."""

    message: int
    turn: int
    values: tuple[Grounded, ...] = ()
    findings: tuple[TextFinding, ...] = ()
    too_long: str = ""
    unread: str = ""
    """The pointer of an earlier result that code could not read, or ""."""
    missing: str = ""
    """The pointer of an earlier result that is missing from the trace, or ""."""


def ground_texts(trace: Trace) -> list[GroundedText]:
    """Ground every assistant text that comes after a call or tells of an own deed, in order."""
    if not [message for message in trace.messages if message.role == "assistant" and message.text]:
        return []
    return list(_Reader(trace).read())


class _Reader:
    """Reads a trace from top to bottom, and grounds each text in what stands before it."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._tools: Mapping[str, ToolDef] = {tool.name: tool for tool in trace.tools or ()}
        today = find_reference_date(trace)
        self._index = FactIndex(today)
        self._deriver = Deriver(self._index, today)
        self._steps: list[Step] = []
        self._unread = self._missing = ""
        self._looked_up = 0

    def read(self) -> Iterator[GroundedText]:
        for n, tool in enumerate(self._trace.tools or ()):
            described = _read_descriptions(tool, self._index.today)
            self._index.add_words(described.texts)
            for path, values in described.values:
                self._index.add_values(values, f"/tools/{n}{path}", "description")
        steps = iter([*self._trace.steps, None])
        step = next(steps)
        for n, message in enumerate(self._trace.messages):
            while step is not None and step.message < n:
                self._add_step(step)
                step = next(steps)
            said: list[Mention] | None = None
            if message.role == "assistant" and message.text:
                said = find_values(message.text, self._index.today)
                grounded = self._ground(n, message, said)
                if grounded is not None:
                    yield grounded
            if n < len(self._trace.messages) - 1:
                self._index.add_text(message.text, f"/messages/{n}/text", cast("Source", message.role), said)

    def _add_step(self, step: Step) -> None:
        self._steps.append(step)
        source: Source = "error" if step.result is not None and step.result.is_error else "result"
        pointer = self._index.add_step(step, self._tools.get(step.call.name), source)
        if step.result is None:
            self._missing = self._missing or pointer
        elif not step.result.is_error and (
            has_media(step.result.content) or _has_broken_structure(step.result.content)
        ):
            self._unread = self._unread or pointer

    def _ground(self, n: int, message: Message, said: list[Mention]) -> GroundedText | None:
        text, pointer = message.text, f"/messages/{n}/text"
        actions = find_own_actions(text, self._trace.tools or (), self._steps)
        if not self._steps and not actions:
            return None
        if self._index.full:
            return GroundedText(n, message.turn, too_long=f"the trace holds {MAX_FACTS} values or more before the text")
        if len(text) > MAX_TEXT_CHARS:
            return GroundedText(n, message.turn, too_long=f"the text is longer than {MAX_TEXT_CHARS} characters")
        if self._looked_up > MAX_MENTIONS_OF_ALL:
            return GroundedText(
                n, message.turn, too_long=f"more than {MAX_MENTIONS_OF_ALL} values stand in the texts before"
            )
        placed = ground_text(text, pointer, self._index, self._deriver, said)
        self._looked_up += len(placed)
        findings = [
            *find_false_actions(text, placed, actions, self._steps, self._tools, self._index),
            *find_other_values(text, placed, actions, self._index),
            *find_completion_after_error(text, self._steps),
        ]
        if not self._unread and not self._missing:
            findings += [*find_scale_slips(placed, self._index), *find_slips(placed, self._index)]
        kept = _keep_first(findings)
        values = tuple([_mark(one, kept) for one in placed])
        unread = self._unread or self._find_empty(values)
        return GroundedText(n, message.turn, values, kept, unread=unread, missing=self._missing)

    def _find_empty(self, values: Sequence[Grounded]) -> str:
        """Return the pointer of a result where all are empty, and the text states a value that stands nowhere; else ""."""
        if all(value.origin != "nowhere" for value in values):
            return ""
        returned = [step.result.content for step in self._steps if step.result is not None]
        leaves = [leaf.value for content in returned for leaf in list_leaves(content, limit=1_000)]
        if any(re.search(r"[^\W_]", value) if isinstance(value, str) else value is not None for value in leaves):
            return ""
        return next((f"/steps/{step.index}/result/content" for step in self._steps if step.result is not None), "")


class _Described(NamedTuple):
    """A tool's texts, and the values in those that have some, with their pointers. `today`: what values count from."""

    today: date | None
    texts: Sequence[tuple[str, Source]]
    values: Sequence[tuple[str, list[Mention]]]


def _read_descriptions(tool: ToolDef, today: date | None) -> _Described:
    """Read a tool's texts, once for all traces of one day."""
    kept = tool.memo.get("values of texts")
    if not isinstance(kept, _Described) or kept.today != today:
        texts: list[tuple[str, Source]] = [(text.text, "description") for text in tool.texts[1:]]
        read = [(text.path, find_values(text.text, today)) for text in tool.texts[1:]]
        kept = tool.memo["values of texts"] = _Described(today, texts, [one for one in read if one[1]])
    return kept


def _has_broken_structure(content: JsonValue) -> bool:
    """Whether a result has what looks like JSON and could not be read."""
    for body in iter_bodies(content):
        rest = read_text(body.text).beside_exact.strip()
        if rest.startswith(("{", "[")) and len(rest) > 1:
            return True
    return False


def _keep_first(findings: Sequence[TextFinding]) -> tuple[TextFinding, ...]:
    """Keep one finding for each place: a proof before a suspicion."""
    found: dict[tuple[int, int], TextFinding] = {}
    for finding in sorted(findings, key=lambda one: (not one.proved, one.start)):
        found.setdefault((finding.start, finding.end), finding)
    return tuple(sorted(found.values(), key=lambda one: one.start))


def _mark(one: Placed, findings: Sequence[TextFinding]) -> Grounded:
    """Say of a value that code speaks against it; of one without a source, what does."""
    for finding in findings:
        if finding.start <= one.mention.start and one.mention.end <= finding.end:
            sources = one.grounded.sources or ((finding.source,) if finding.source else ())
            return replace(one.grounded, code=finding.code, sources=sources)
    return one.grounded
