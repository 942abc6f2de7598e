"""A trace as a history: what was known before each of its messages."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from service.core.grounding.facts import Source
from service.core.grounding.known import KnownFacts
from service.core.grounding.reading.languages import list_number_words
from service.core.grounding.reading.mentions import Mention, normalize_code
from service.core.grounding.reading.values import find_values
from service.core.grounding.store import FactStore
from service.core.json.walk import list_leaves
from service.core.models.light import lazy
from service.core.results.structure import ResultBody, iter_bodies
from service.core.trace import Step, ToolDef, Trace

MAX_SQUEEZED = 200_000
"""Characters of texts that are searched for a code in pieces."""
_MAX_TEXTS = 2_000

STRONG: frozenset[Source] = frozenset({"user", "system", "result", "error"})
"""Who can give a value; what models write and tools describe only repeats it."""


class History:
    """What a trace holds, message by message. Nothing is read before it is asked for."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.tools: Mapping[str, ToolDef] = {tool.name: tool for tool in trace.tools or ()}
        self.mentions: list[list[Mention]] = []
        """The values of each message."""
        self._bodies: dict[int, Sequence[ResultBody]] = {}
        self._marks: list[int] = []
        """By message, how many values stand before it."""

    def list_bodies(self, step: Step) -> Sequence[ResultBody]:
        """Return the texts in what a call returned."""
        if step.index not in self._bodies:
            self._bodies[step.index] = [*iter_bodies(step.result.content)] if step.result is not None else []
        return self._bodies[step.index]

    @lazy
    def writers(self) -> dict[int, str | None]:
        """The steps that returned, word for word, what another agent wrote: a model's output, which gives nothing. By writer."""
        if not self.trace.has_several_agents():
            return {}
        wrote = {(normalize_code(m.text), m.agent) for m in self.trace.messages if m.role == "assistant" and m.text}
        found: dict[int, str | None] = {}
        for step in self.trace.steps:
            texts = {normalize_code(body.text) for body in self.list_bodies(step)}
            for agent in [agent for text, agent in wrote if text in texts and agent != step.agent]:
                found[step.index] = agent
        return found

    @lazy
    def store(self) -> FactStore:
        """All values of the trace."""
        store = FactStore()
        for n, tool in enumerate(self.trace.tools or ()):
            for path, mentions in _read_descriptions(tool):
                store.add_said("", mentions, f"/tools/{n}{path}", "description")
        last = max([len(self.trace.messages) - 1, *[step.message for step in self.trace.steps]])
        for n, step in self._iter_events():
            if step is not None:
                failed: Source = "error" if step.result is not None and step.result.is_error else "result"
                source = "agent" if step.index in self.writers else failed
                store.add_step(step, self.tools.get(step.call.name), source, self.list_bodies(step))
                continue
            self._marks.append(len(store.cells))
            message = self.trace.messages[n] if n < len(self.trace.messages) else None
            self.mentions.append(find_values(message.text) if message is not None else [])
            if message is None or n >= last:  # nothing is looked up after it
                store.add_said("", (), f"/messages/{n}/text", "user")
            else:
                store.add_said(message.text, self.mentions[n], f"/messages/{n}/text", cast("Source", message.role))
        return store

    def _iter_events(self) -> Iterator[tuple[int, Step | None]]:
        """Yield the messages by number, each after the steps that stand before it; at last the number after the last one."""
        steps = list(self.trace.steps)
        for n in range(max([len(self.trace.messages), *[step.message for step in steps]]) + 1):
            while steps and steps[0].message < n:
                yield n, steps.pop(0)
            yield n, None

    def know(self, message: int) -> KnownFacts:
        """Return what is known before a message."""
        store = self.store  # it makes the marks
        return KnownFacts(store, self._marks[message])

    @lazy
    def spoken(self) -> SpokenTexts:
        """The texts of messages and results as they may have been typed."""
        texts = SpokenTexts()
        for n, step in self._iter_events():
            if step is None:
                texts.marks.append(len(texts.joined))
                if n < len(self.trace.messages):
                    message = self.trace.messages[n]
                    texts.add(message.text, f"/messages/{n}/text", cast("Source", message.role))
            elif step.result is not None:
                source: Source = "agent" if step.index in self.writers else "result"
                for leaf in list_leaves(step.result.content, f"/steps/{step.index}/result/content", _MAX_TEXTS):
                    if isinstance(leaf.value, str):
                        texts.add(leaf.value, leaf.pointer, source)
        return texts

    def name_writer(self, pointer: str) -> str:
        """Name who wrote what stands at a pointer, of several agents by name."""
        kind, _, rest = pointer[1:].partition("/")
        n = int(rest.partition("/")[0])
        if kind == "tools":
            return "the description of a tool"
        agent = self.trace.messages[n].agent if kind == "messages" else self.writers.get(n, self.trace.steps[n].agent)
        return "what the assistant wrote" if agent is None else f"what the agent {agent} wrote"


_Described = Sequence[tuple[str, list[Mention]]]


def _read_descriptions(tool: ToolDef) -> _Described:
    """Return the values in a tool's texts with their pointers, read once for all traces."""
    if "values of texts" not in tool.memo:
        read = [(text.path, find_values(text.text)) for text in tool.texts[1:]]
        tool.memo["values of texts"] = [one for one in read if one[1]]
    return cast("_Described", tool.memo["values of texts"])


_SPOKEN = {"oh": "0", "dot": ".", "at": "@", "dash": "-", "hyphen": "-"} | {
    word: str(n) for word, n in list_number_words("en").items() if n < 10
}
_SPOKEN_WORDS = re.compile(rf"\b(?:{'|'.join(_SPOKEN)})\b")
_BETWEEN = re.compile(r"[\W_]+")
LEADING_ZEROS = re.compile(r"(?<!\d)0+(?=[1-9])")
"""Zeros before a number, which a code may have or not."""


class SpokenText(NamedTuple):
    """A text as it may have been typed: digits for number words, `@` and `.` for `at` and `dot`."""

    text: str
    pointer: str
    source: Source


class SpokenTexts:
    """Texts without what may stand between the characters of a code, to be searched for codes in pieces."""

    def __init__(self) -> None:
        self.joined = ""
        self.marks: list[int] = []
        """By message, how much of it stands before that."""
        self._texts: list[SpokenText] = []
        self._starts: list[int] = []
        self._size = 0

    def add(self, text: str, pointer: str, source: Source) -> None:
        """Add a text, while they are not too long together."""
        if self._size < MAX_SQUEEZED:
            self._size += len(text)
            folded = unicodedata.normalize("NFKC", text).casefold()
            typed = LEADING_ZEROS.sub("", _SPOKEN_WORDS.sub(lambda match: _SPOKEN[match.group()], folded))
            self._texts.append(SpokenText(typed, pointer, source))
            self._starts.append(len(self.joined))
            self.joined += _BETWEEN.sub("", typed) + "\n"

    def find(self, code: str, message: int) -> SpokenText | None:
        """Find the text before a message with the characters of a code in order, whatever stands between them."""
        bare, end = _BETWEEN.sub("", code), self.marks[message]
        weak: SpokenText | None = None
        at = self.joined.find(bare, 0, end)
        while at >= 0:  # only in these texts may it stand
            n = bisect_right(self._starts, at)
            one = self._texts[n - 1]
            if _compile_pieces(code).search(one.text):
                if one.source in STRONG:
                    return one
                weak = weak or one
            at = self.joined.find(bare, self._starts[n], end) if n < len(self._starts) else -1
        return weak


@lru_cache(maxsize=256)
def _compile_pieces(code: str) -> re.Pattern[str]:
    inner = r"[\W_]*".join(re.escape(c) for c in code)
    return re.compile(rf"(?<![a-z0-9])0*{inner}(?![a-z0-9])")
