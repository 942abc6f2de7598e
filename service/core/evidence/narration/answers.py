"""Check every claim in a trace's answers: each assistant text against all results before it."""

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
from service.core.trace import Message, Step, ToolDef, Trace
from service.core.work_limits import OverBudgetError

MAX_CLAIMS = 500
"""A text with more quantities than this is not checked."""
MAX_IN_ALL = 5_000
"""Once a trace's texts have had more quantities than this checked, the remaining texts are not."""
MAX_SENTENCES = 1_500
"""A text with more sentences than this is not checked."""
MAX_LAST = 16
"""How many of the latest quantities that others said a text's own may be computed from."""
MAX_OTHERS = 400
"""How many of the latest quantities that others said may account for those of a text."""
MAX_PROSE = 50_000
"""Characters of prose results that are searched for claims; longer prose counts as unread."""


class Narration(NamedTuple):
    """One assistant text that follows a call, with its verdicts. `too_long` says why it was not read, or is ""."""

    message: int
    turn: int
    claims: tuple[ClaimVerdict, ...]
    too_long: str = ""
    unread: str = ""
    """The pointer of an earlier result that code needed and could not read, or ""."""
    missing: str = ""
    """The pointer of an earlier result that is missing from the trace, or ""."""
    inferred: str = ""
    """The pointer of the last earlier result whose structure is inferred, or ""."""


def narrate(trace: Trace) -> list[Narration]:
    """Check the claims of every assistant text that comes after a call, in order."""
    answers = [message for message in trace.messages if message.role == "assistant" and message.text]
    return list(_narrate(trace)) if answers else []


def _narrate(trace: Trace) -> Iterator[Narration]:
    inferred = _list_inferred(trace)
    knowledge, gaps, errors, checked = _Knowledge(inferred), _Gaps(inferred), LikelyErrors(), 0
    listener, actions = _Listener(find_reference_date(trace), trace.tools or ()), ToldActions(trace.tools)
    described = {tool.name: describe_fields(tool.output_schema) for tool in trace.tools or () if tool.output_schema}
    steps = iter([*trace.steps, None])
    step = next(steps)
    for n, message in enumerate(trace.messages):
        while step is not None and step.message < n:
            knowledge.add(step, described.get(step.call.name, {}))
            listener.add_step(step)
            gaps.add(step)
            errors.add(step)
            actions.add(step)
            step = next(steps)
        if message.role != "assistant":
            listener.add_text(message.text, beside=message.role == "agent")
            continue
        if message.text and (knowledge.size or gaps.any or actions.check(message.text, "")):
            if checked > MAX_IN_ALL:
                yield Narration(n, message.turn, (), f"more than {MAX_IN_ALL} numbers stand in the texts before")
                continue
            narration = _narrate_text(n, message, knowledge, listener, complete=not gaps.hide_values)
            checked += len(narration.claims)
            path = f"/messages/{n}/text"
            claims = (*narration.claims, *errors.check(message.text, path), *actions.check(message.text, path))
            unread = gaps.find_unread(narration.claims)
            yield narration._replace(claims=claims, unread=unread, missing=gaps.missing, inferred=gaps.inferred)
        listener.add_text(message.text, beside=True)


def _list_inferred(trace: Trace) -> frozenset[int]:
    """List the steps with a result whose structure is inferred."""
    return frozenset([step.index for step in trace.steps if step.result and has_inferred(step.result.content)])


_AnswerText = tuple[str, str, Sequence[Quantity]]
"""A text, its pointer, and its quantities."""


class _Knowledge:
    """The facts of the results so far: those from JSON and, if any structure is inferred, all of them too."""

    def __init__(self, inferred: frozenset[int]) -> None:
        self.proved = FactIndex()
        self.all = FactIndex(inferred=True) if inferred else None

    @property
    def size(self) -> int:
        """The number of facts."""
        return (self.all or self.proved).size

    def add(self, step: Step, described: Mapping[str, str]) -> None:
        """Add the facts of a step's result. `described`: what the output schema of its tool says about fields."""
        self.proved.add(step, described)
        if self.all is not None:
            self.all.add(step, described)

    def check(self, text: _AnswerText, utterances: Utterances, *, complete: bool) -> list[ClaimVerdict]:
        """Return the verdicts on the claims of a text. `complete`: every result was read."""
        if self.all is None:
            return check_text(*text, self.proved, utterances, complete=complete)
        proved = check_text(*text, self.proved, utterances, complete=False)
        return weigh(proved, check_text(*text, self.all, utterances, complete=complete))


class _Gaps:
    """The results so far that are missing, or whose fields code cannot look up: media, broken JSON and prose."""

    def __init__(self, inferred: frozenset[int]) -> None:
        self._inferred = inferred
        self.missing = ""
        self.inferred = ""
        """The pointer of the last result whose structure is inferred, or ""."""
        self._opaque = ""
        self._prose: list[tuple[str, str]] = []

    @property
    def any(self) -> bool:
        """Whether there is any gap."""
        return bool(self.missing or self._opaque or self._prose)

    @property
    def hide_values(self) -> bool:
        """Whether a value that is not found may be in a gap. Prose does not count: it is searched for values."""
        return bool(self.missing or self._opaque)

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
            self._opaque = self._opaque or path
        elif left:
            self._prose.append((path, "\n".join(left)))

    def find_unread(self, claims: Iterable[ClaimVerdict]) -> str:
        """Find a result that stays unread for a text, or "".

        A result that seems to have fields always does; prose does where some claim is not in it.
        """
        if self._opaque or not self._prose:
            return self._opaque
        prose = "\n".join([text for _, text in self._prose])
        if len(prose) > MAX_PROSE:
            return self._prose[0][0]
        missing = [claim for claim in claims if claim.verdict != "supported" and not _occurs_in(claim.text, prose)]
        return self._prose[0][0] if missing else ""


def _occurs_in(words: str, text: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(words)}(?!\w)", text) is not None


def _narrate_text(n: int, message: Message, knowledge: _Knowledge, listener: _Listener, *, complete: bool) -> Narration:
    text, turn = message.text, message.turn
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
        verdicts = knowledge.check((text, f"/messages/{n}/text", claims), listener.utterances, complete=complete)
    except OverBudgetError as error:
        return Narration(n, turn, (), str(error))
    return Narration(n, turn, tuple(verdicts))


class _Listener:
    """Collects what user and system said and what calls passed: repeating that does not retell a result."""

    def __init__(self, today: date | None, tools: Iterable[ToolDef]) -> None:
        self._values: set[Value] = set()
        self._texts: list[str] = []
        self._quantities: list[Quantity] = []
        self._beside: list[Quantity] = []
        self._unread: list[tuple[str, bool]] = [(tool.description, True) for tool in tools if tool.description]
        self.utterances = Utterances(self._has, self._has_words, today, self._list_last, self._list_all)

    def add_text(self, text: str, *, beside: bool = False) -> None:
        """Add what others said. `beside`: it may account for a value, but the assistant was not told to repeat it."""
        self._unread.append((text, beside))  # read on demand: most traces never need it

    def add_step(self, step: Step) -> None:
        """Add the arguments of a call and, if it failed, the text of its error."""
        for leaf in list_leaves(cast("JsonValue", dict(step.call.arguments or {})), limit=500):
            self.add_text(leaf.value if isinstance(leaf.value, str) else repr(leaf.value))
        if step.result is not None and step.result.is_error:
            for leaf in list_leaves(step.result.content, limit=100):
                self.add_text(str(leaf.value), beside=True)

    def _read(self) -> None:
        for text, beside in self._unread:
            found = find_stated(text)
            if beside:
                self._beside += found
                continue
            self._texts.append(flatten_text(text[:MAX_TEXT]))
            self._values.update(value for quantity in found for value in quantity.values)
            self._quantities += found
        self._unread.clear()

    def _has(self, quantity: Quantity) -> bool:
        self._read()
        return any(value in self._values for value in quantity.values)

    def _list_last(self) -> list[Quantity]:
        self._read()
        return self._quantities[-MAX_LAST:]

    def _list_all(self) -> list[Quantity]:
        self._read()
        return [*self._quantities[-MAX_OTHERS:], *self._beside[-MAX_OTHERS:]]

    def _has_words(self, text: str) -> bool:
        self._read()
        words = flatten_text(text)
        return any(words in said for said in self._texts)
