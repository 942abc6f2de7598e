"""All that a trace's answers claim: each text against every result before it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.evidence.actions.told import ToldActions
from service.core.evidence.facts.fact_index import FactIndex
from service.core.evidence.facts.facts import MAX_FACTS
from service.core.evidence.facts.field_units import describe_fields
from service.core.evidence.narration.completion import LikelyErrors
from service.core.evidence.narration.narration import check_text
from service.core.evidence.narration.suspicion import weigh
from service.core.evidence.narration.verdicts import ClaimVerdict, Utterances
from service.core.evidence.provenance.sources import find_reference_date
from service.core.evidence.reading.quantities import MAX_TEXT, Quantity, Value
from service.core.evidence.reading.stated import find_stated
from service.core.evidence.reading.words import flatten_text
from service.core.json.leaves import list_leaves
from service.core.results.media import has_media
from service.core.results.structure import has_inferred, iter_bodies, read_text
from service.core.trace import Step, Trace
from service.core.work_limits import OverBudgetError

MAX_CLAIMS = 500
"""Quantities of one text that are checked."""


MAX_IN_ALL = 5_000
"""Quantities of all texts of a trace that are checked."""
MAX_SENTENCES = 1_500
MAX_LAST = 16
"""Quantities that others said of which those of a text may be worked out."""
MAX_PROSE = 50_000
"""Characters of results in prose in which claims are looked for."""


class Narration(NamedTuple):
    """One text of the assistant's that follows a call. `too_long` says why it was not read, else ""."""

    message: int
    turn: int
    claims: tuple[ClaimVerdict, ...]
    too_long: str = ""
    unread: str = ""
    """The pointer of a result before it that code needed and could not read, or ""."""
    missing: str = ""
    """The pointer of a result before it that the trace does not tell, or ""."""
    inferred: str = ""
    """The pointer of the last result before it whose structure is inferred, or ""."""


def narrate(trace: Trace) -> list[Narration]:
    """The verdicts on the claims of every text of the assistant's that comes after a call, in order."""
    spoken = [one for one in trace.messages if one.role == "assistant" and one.text]
    return list(_narrate(trace)) if spoken else []


def _narrate(trace: Trace) -> Iterator[Narration]:
    inferred = _list_inferred(trace)
    knowledge, gaps, errors, checked = _Knowledge(inferred), _Gaps(inferred), LikelyErrors(), 0
    listener, actions = _Listener(find_reference_date(trace)), ToldActions(trace.tools)
    described = {tool.name: describe_fields(tool.output_schema) for tool in trace.tools or () if tool.output_schema}
    steps = iter([*trace.steps, None])
    step = next(steps)
    for n, message in enumerate(trace.messages):
        while step is not None and step.message < n:
            knowledge.add(step, described.get(step.call.name, {}))
            listener.call(step)
            gaps.add(step)
            errors.add(step)
            actions.add(step)
            step = next(steps)
        if message.role != "assistant":
            listener.text(message.text)
        elif message.text and (knowledge.size or gaps.any or actions.check(message.text, "")):
            if checked > MAX_IN_ALL:
                yield Narration(n, message.turn, (), f"more than {MAX_IN_ALL} numbers stand in the texts before")
                continue
            found = _narrate_text(n, message.turn, message.text, knowledge, listener)
            checked += len(found.claims)
            path = f"/messages/{n}/text"
            claims = (*found.claims, *errors.check(message.text, path), *actions.check(message.text, path))
            unread = gaps.find_unread(found.claims)
            yield found._replace(claims=claims, unread=unread, missing=gaps.missing, inferred=gaps.inferred)


def _list_inferred(trace: Trace) -> frozenset[int]:
    """The steps with a result whose structure is inferred."""
    return frozenset([step.index for step in trace.steps if step.result and has_inferred(step.result.content)])


class _Knowledge:
    """The facts of the results so far: those of JSON, and, where structure was inferred, all of them."""

    def __init__(self, inferred: frozenset[int]) -> None:
        self.proved = FactIndex()
        self.all = FactIndex(inferred=True) if inferred else None

    @property
    def size(self) -> int:
        """How many there are."""
        return (self.all or self.proved).size

    def add(self, step: Step, described: Mapping[str, str]) -> None:
        """The facts of a step's result, and what the schema of its tool says of fields."""
        self.proved.add(step, described)
        if self.all is not None:
            self.all.add(step, described)

    def check(self, text: str, path: str, utterances: Utterances, quantities: Sequence[Quantity]) -> list[ClaimVerdict]:
        """The verdicts on the claims of a text."""
        proved = check_text(text, path, self.proved, utterances, quantities)
        return proved if self.all is None else weigh(proved, check_text(text, path, self.all, utterances, quantities))


class _Gaps:
    """The results so far that are not there, or in no form in which a text that retells them finds their fields."""

    def __init__(self, inferred: frozenset[int]) -> None:
        self._inferred = inferred
        self.missing = ""
        self.inferred = ""
        """The pointer of the last result whose structure is inferred."""
        self._closed = ""
        self._prose: list[tuple[str, str]] = []

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return bool(self.missing or self._closed or self._prose)

    def add(self, step: Step) -> None:
        path = f"/steps/{step.index}/result/content"
        if step.result is None:
            self.missing = self.missing or f"/steps/{step.index}/result"
        elif not step.result.is_error:
            self._add_result(path, step.result.content)
            if step.index in self._inferred:
                self.inferred = path

    def _add_result(self, path: str, content: JsonValue) -> None:
        texts = [""] if content is None else [read_text(body.text).beside_exact for body in iter_bodies(content)]
        left = [text for text in texts if text.strip() or not content]
        if has_media(content) or any("{" in text or "[" in text for text in left):
            self._closed = self._closed or path
        elif left:
            self._prose.append((path, "\n".join(left)))

    def find_unread(self, claims: Iterable[ClaimVerdict]) -> str:
        """The result that stays unread for a text: one that seems to hold fields always, prose where it does not say a claim."""
        if self._closed or not self._prose:
            return self._closed
        said = "\n".join([text for _, text in self._prose])
        if len(said) > MAX_PROSE:
            return self._prose[0][0]
        missing = [claim for claim in claims if claim.verdict != "supported" and not _occurs_in(claim.text, said)]
        return self._prose[0][0] if missing else ""


def _occurs_in(words: str, text: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(words)}(?!\w)", text) is not None


def _narrate_text(n: int, turn: int, text: str, knowledge: _Knowledge, listener: _Listener) -> Narration:
    if knowledge.size >= MAX_FACTS:
        return Narration(n, turn, (), f"the results hold {MAX_FACTS} values or more")
    if len(text) > MAX_TEXT:
        return Narration(n, turn, (), f"the text is longer than {MAX_TEXT} characters")
    claims = find_stated(text)
    if len(claims) > MAX_CLAIMS:
        return Narration(n, turn, (), f"the text has {len(claims)} numbers, and {MAX_CLAIMS} are checked at most")
    sentences = sum(map(text.count, ".!?;\n"))
    if sentences > MAX_SENTENCES:
        return Narration(n, turn, (), f"the text has {sentences} sentences, and {MAX_SENTENCES} are checked at most")
    try:
        verdicts = knowledge.check(
            text,
            f"/messages/{n}/text",
            Utterances(listener.has, listener.words, listener.today, listener.list_last),
            claims,
        )
    except OverBudgetError as error:
        return Narration(n, turn, (), str(error))
    return Narration(n, turn, tuple(verdicts))


class _Listener:
    """What the user and the system said, and what calls were made with: a claim of these is no retelling of a result."""

    def __init__(self, today: date | None) -> None:
        self.today = today
        self._values: set[Value] = set()
        self._texts: list[str] = []
        self._last: list[Quantity] = []
        self._unread: list[str] = []  # most traces never ask

    def text(self, text: str) -> None:
        self._unread.append(text)

    def call(self, step: Step) -> None:
        for leaf in list_leaves(cast("JsonValue", dict(step.call.arguments or {})), limit=500):
            self.text(leaf.value if isinstance(leaf.value, str) else repr(leaf.value))

    def has(self, quantity: Quantity) -> bool:
        self._read()
        return any(value in self._values for value in quantity.values)

    def _read(self) -> None:
        for text in self._unread:
            self._texts.append(flatten_text(text[:MAX_TEXT]))
            for quantity in find_stated(text):
                self._values.update(quantity.values)
                self._last = [*self._last, quantity][-MAX_LAST:]
        self._unread.clear()

    def list_last(self) -> list[Quantity]:
        self._read()
        return self._last

    def words(self, text: str) -> bool:
        self._read()
        wanted = flatten_text(text)
        return any(wanted in said for said in self._texts)
