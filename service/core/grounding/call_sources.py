"""What a model could know when it made a call: the texts and results before it, and their index."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple, cast

from service.core.grounding.clock import find_reference_date
from service.core.grounding.derive import Deriver
from service.core.grounding.fact_index import FactIndex
from service.core.grounding.facts import Source
from service.core.grounding.fields import says_minor
from service.core.grounding.reading.languages import list_number_words
from service.core.grounding.reading.mentions import normalize_code
from service.core.json.walk import list_leaves
from service.core.results.structure import has_media, iter_bodies
from service.core.trace import Step, ToolDef, Trace
from service.core.work_limits import Meter

MAX_SQUEEZED = 200_000
"""Characters of texts that are searched for a code in pieces."""
_CHARS_OF_A_LOOK = 64

STRONG: frozenset[Source] = frozenset({"user", "system", "result", "error"})
"""Who can give a value; what models write and tools describe only repeats it."""


class _Spoken(NamedTuple):
    """A text as it may have been typed: digits for number words, `@` and `.` for `at` and `dot`."""

    text: str
    pointer: str
    source: Source


_SPOKEN = {"oh": "0", "dot": ".", "at": "@", "dash": "-", "hyphen": "-"} | {
    word: str(n) for word, n in list_number_words("en").items() if n < 10
}
_SPOKEN_WORDS = re.compile(rf"\b(?:{'|'.join(_SPOKEN)})\b")
_BETWEEN = re.compile(r"[\W_]+")
LEADING_ZEROS = re.compile(r"(?<!\d)0+(?=[1-9])")
"""Zeros before a number, which a code may have or not."""


@lru_cache(maxsize=256)
def _compile_pieces(code: str) -> re.Pattern[str]:
    inner = r"[\W_]*".join(re.escape(c) for c in code)
    return re.compile(rf"(?<![a-z0-9])0*{inner}(?![a-z0-9])")


def _type_out(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return LEADING_ZEROS.sub("", _SPOKEN_WORDS.sub(lambda match: _SPOKEN[match.group()], folded))


class CallSources:
    """What the model could know, step by step: call `advance` with the steps in order."""

    def __init__(self, trace: Trace, meter: Meter | None = None) -> None:
        """`meter`: that of the item; it is charged for every search without an index."""
        self._trace, self._meter = trace, meter or Meter()
        self._tools: Mapping[str, ToolDef] = {tool.name: tool for tool in trace.tools or ()}
        self._today = find_reference_date(trace)
        self._told = _find_told(trace)
        self.index = FactIndex(self._today)
        self.deriver = Deriver(self.index, self._today)
        self._squeezed: list[_Spoken] = []
        self._joined, self._starts = "", list[int]()
        """These texts without what may stand between the characters of a code, and where each begins."""
        self._size = 0
        self._messages = self._steps = 0
        self.counts_cents = any(says_minor(message.text) for message in trace.messages if message.role == "system")
        self._gap = next((part.path for part in trace.unread if part.kind != "call" and part.path.count("/") > 1), "")

    @property
    def gap(self) -> str:
        """The pointer of something that the model could read and code cannot, or ""."""
        return self._gap

    def find_squeezed(self, code: str) -> tuple[str, Source] | None:
        """Find a text with the characters of a code in order, whatever stands between them, and zeros before its numbers."""
        self._meter.spend("looks", 1 + self._size // _CHARS_OF_A_LOOK)
        bare = _BETWEEN.sub("", code)
        weak: tuple[str, Source] | None = None
        at = self._joined.find(bare)
        while at >= 0:  # only in these texts may it stand
            n = bisect_right(self._starts, at) - 1
            _, pointer, source = one = self._squeezed[n]
            if _compile_pieces(code).search(one.text):
                if source in STRONG:
                    return pointer, source
                weak = weak or (pointer, source)
            at = self._joined.find(bare, self._starts[n + 1]) if n + 1 < len(self._starts) else -1
        return weak

    def name_writer(self, pointer: str) -> str:
        """Name who wrote what stands at a pointer, of several agents by name."""
        kind, _, rest = pointer[1:].partition("/")
        n = int(rest.partition("/")[0])
        if kind == "messages":
            agent = self._trace.messages[n].agent
        else:
            agent = self._told.get(n, self._trace.steps[n].agent) if kind == "steps" else None
        return "the assistant" if agent is None else f"the agent {agent}"

    def find_described(self, code: str) -> str | None:
        """Find a description of a tool that names a code; return its pointer."""
        pattern = _compile_pieces(code)
        described = ((n, text) for n, tool in enumerate(self._trace.tools or ()) for text in tool.texts[1:])
        return next((f"/tools/{n}{text.path}" for n, text in described if pattern.search(text.text.casefold())), None)

    def advance(self, step: Step) -> None:
        """Take in what stands before a call: earlier messages, and the results that the model saw."""
        while self._messages < step.message:
            message = self._trace.messages[self._messages]
            self._add_text(message.text, f"/messages/{self._messages}/text", cast("Source", message.role))
            self._messages += 1
        while self._steps < len(self._trace.steps) and self._trace.steps[self._steps].message < step.message:
            self._add_step(self._trace.steps[self._steps])
            self._steps += 1

    def _add_step(self, step: Step) -> None:
        source: Source = "agent" if step.index in self._told else "result"
        seen = step.result is not None and not has_media(step.result.content)
        pointer = self.index.add_step(step, self._tools.get(step.call.name), source if seen else None)
        if step.result is None or not seen:
            self._gap = self._gap or f"/steps/{step.index}/result"
            return
        for leaf in list_leaves(step.result.content, pointer, 2_000):
            if isinstance(leaf.value, str):
                self._squeeze(leaf.value, leaf.pointer, source)

    def _add_text(self, text: str, pointer: str, source: Source) -> None:
        self.index.add_text(text, pointer, source)
        self._squeeze(text, pointer, source)

    def _squeeze(self, text: str, pointer: str, source: Source) -> None:
        if self._size < MAX_SQUEEZED:
            self._size += len(text)
            spoken = _type_out(text)
            self._squeezed.append(_Spoken(spoken, pointer, source))
            self._starts.append(len(self._joined))
            self._joined += _BETWEEN.sub("", spoken) + "\n"


def _find_told(trace: Trace) -> dict[int, str | None]:
    """Find the steps that returned, word for word, what another agent wrote: a model's output, which gives nothing. By writer."""
    if not trace.has_several_agents():
        return {}
    writers = {(normalize_code(m.text), m.agent) for m in trace.messages if m.role == "assistant" and m.text}
    told: dict[int, str | None] = {}
    for step in trace.steps:
        texts = (
            {normalize_code(body.text) for body in iter_bodies(step.result.content)} if step.result is not None else ()
        )
        for agent in [agent for text, agent in writers if text in texts and agent != step.agent]:
            told[step.index] = agent
    return told
