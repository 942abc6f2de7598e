"""All that a trace's answers claim: each text against every result before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.budget import OverBudgetError
from service.core.evidence.facts import MAX_FACTS
from service.core.evidence.leaves import leaves_of
from service.core.evidence.ledger import Ledger
from service.core.evidence.narration import check_text
from service.core.evidence.quantities import MAX_TEXT, Quantity, Value, find_quantities
from service.core.evidence.verdicts import ClaimVerdict, Heard
from service.core.evidence.words import flat
from service.core.trace import Step, Trace

MAX_CLAIMS = 500
"""Quantities of one text that are checked."""


MAX_IN_ALL = 5_000
"""Quantities of all texts of a trace that are checked."""
MAX_SENTENCES = 1_500


class Narration(NamedTuple):
    """One text of the assistant's that follows a result. `too_long` says why it was not read, else ""."""

    message: int
    turn: int
    claims: tuple[ClaimVerdict, ...]
    too_long: str = ""


def narrate(trace: Trace) -> list[Narration]:
    """The verdicts on the claims of every text of the assistant's that comes after a result, in order."""
    return list(_narrate(trace))


def _narrate(trace: Trace) -> Iterator[Narration]:
    ledger, heard, checked = Ledger(), _Listener(), 0
    steps = iter([*trace.steps, None])
    step = next(steps)
    for n, message in enumerate(trace.messages):
        while step is not None and step.message < n:
            ledger.add(step)
            heard.call(step)
            step = next(steps)
        if message.role != "assistant":
            heard.text(message.text)
        elif message.text and ledger.size:
            if checked > MAX_IN_ALL:
                yield Narration(n, message.turn, (), f"more than {MAX_IN_ALL} numbers stand in the texts before")
                continue
            found = _of_text(n, message.turn, message.text, ledger, heard)
            checked += len(found.claims)
            yield found


def _of_text(n: int, turn: int, text: str, ledger: Ledger, heard: _Listener) -> Narration:
    if ledger.size >= MAX_FACTS:
        return Narration(n, turn, (), f"the results hold {MAX_FACTS} values or more")
    if len(text) > MAX_TEXT:
        return Narration(n, turn, (), f"the text is longer than {MAX_TEXT} characters")
    claims = find_quantities(text)
    if len(claims) > MAX_CLAIMS:
        return Narration(n, turn, (), f"the text has {len(claims)} numbers, and {MAX_CLAIMS} are checked at most")
    sentences = sum(map(text.count, ".!?;\n"))
    if sentences > MAX_SENTENCES:
        return Narration(n, turn, (), f"the text has {sentences} sentences, and {MAX_SENTENCES} are checked at most")
    try:
        verdicts = check_text(text, f"/messages/{n}/text", ledger, Heard(heard.has, heard.words), claims)
    except OverBudgetError as error:
        return Narration(n, turn, (), str(error))
    return Narration(n, turn, tuple(verdicts))


class _Listener:
    """What the user and the system said, and what calls were made with: a claim of these is no retelling of a result."""

    def __init__(self) -> None:
        self._values: set[Value] = set()
        self._texts: list[str] = []
        self._unread: list[str] = []  # most traces never ask

    def text(self, text: str) -> None:
        self._unread.append(text)

    def call(self, step: Step) -> None:
        for leaf in leaves_of(cast("JsonValue", dict(step.call.arguments or {})), limit=500):
            self.text(leaf.value if isinstance(leaf.value, str) else repr(leaf.value))

    def has(self, quantity: Quantity) -> bool:
        self._read()
        return any(value in self._values for value in quantity.values)

    def _read(self) -> None:
        for text in self._unread:
            self._texts.append(flat(text[:MAX_TEXT]))
            for quantity in find_quantities(text):
                self._values.update(quantity.values)
        self._unread.clear()

    def words(self, text: str) -> bool:
        self._read()
        wanted = flat(text)
        return any(wanted in said for said in self._texts)
