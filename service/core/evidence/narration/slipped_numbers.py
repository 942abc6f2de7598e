"""Suspect numbers that are a slip of a held one: another digit, the point, the sign, the unit, or a wrong total.

Such a number is the likeliest of all mistakes, so little is let pass: it must follow from numbers that belong together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal

from service.core.evidence.arithmetic.accounts import Accounts
from service.core.evidence.arithmetic.holding import SUM
from service.core.evidence.arithmetic.transforms import is_other_unit, name_slip
from service.core.evidence.facts.entities import MAX_INSIDE, Holdings
from service.core.evidence.narration.binding import is_about
from service.core.evidence.narration.fitting import list_typed, list_typed_numbers
from service.core.evidence.narration.verdicts import Ruling, Utterances, suspect
from service.core.evidence.reading.quantities import Quantity, list_significant_digits
from service.core.evidence.reading.words import split_words
from service.core.evidence.sentences.claims import Claim
from service.core.evidence.sentences.mentions import Clause, find_words

_KINDS = frozenset({"number", "money", "percent", "measure", "duration"})
_OF_SUBJECT = frozenset({"number", "duration"})
"""Kinds whose values are so common that only a slip of the clause's own entities counts."""
_ABOVE_ZERO = split_words("positive plus profit surplus gain gained")
_PLACES = 4


class SlippedNumbers:
    """Finds numbers of one text that are slips of those that results hold."""

    def __init__(
        self, holdings: Holdings, utterances: Utterances, accounts: Accounts, clauses: Sequence[Clause]
    ) -> None:
        self._holdings = holdings
        self._utterances = utterances
        self._accounts = accounts
        self._clauses = clauses

    def weigh(self, claim: Claim) -> Ruling | None:
        """Suspect a number that is a slip of a held one or of a total; None if it is none."""
        said = claim.quantity
        if said.kind not in _KINDS or said.number is None or self._utterances.has(said):
            return None
        return self._check_unit(claim) or self._check_value(claim, said.number) or self._check_total(claim, said.number)

    def _check_unit(self, claim: Claim) -> Ruling | None:
        """Suspect a measure that results hold in another unit only: 12 km given as 12 miles."""
        said = claim.quantity
        typed = list_typed(said, self._holdings) if said.kind == "measure" else []
        other = next((fact for fact in typed if is_other_unit(said, fact)), None)
        if other is None or self._accounts.holds(claim.statement, rough=is_about(claim)):
            return None
        return suspect(said.text, other, "wrong_unit")

    def _check_value(self, claim: Claim, number: Decimal) -> Ruling | None:
        said = claim.quantity
        typed = list_typed_numbers(said, self._holdings)
        if said.kind in _OF_SUBJECT:
            inside = self._find_inside(said)
            typed = [(fact, held) for fact, held in typed if id(fact) in inside]
        slips = [(name_slip(number, held), fact) for fact, held in typed if len(list_significant_digits(held)) > 1]
        # A digit alone resembles any other.
        slips = [(slip, fact) for slip, fact in slips if slip != "wrong_value"]
        for slip, fact in sorted(slips, key=lambda one: one[0] != "scale_flip")[:1]:
            turned = slip == "sign_flip" and not _ABOVE_ZERO.isdisjoint(find_words(claim.sentence))
            # Arithmetic leaves out signs, so it accounts for a number with the wrong one.
            give = self._accounts.give_at_once if turned else self._accounts.give_closely
            give = self._accounts.give_sum if slip == "scale_flip" and said.kind == "money" else give
            return None if give(claim.statement, rough=is_about(claim)) else suspect(said.text, fact, "not_found")
        return None

    def _check_total(self, claim: Claim, number: Decimal) -> Ruling | None:
        """Suspect a slip of the total of a column, where the words give a total."""
        if SUM.isdisjoint(find_words(claim.sentence)):
            return None
        said = claim.quantity
        for total, fact in self._accounts.find_totals(said):
            whole = Decimal(str(round(total, _PLACES)))
            if name_slip(abs(number), whole) in ("digit_flip", "scale_flip"):
                given = self._accounts.give_sum(claim.statement, rough=is_about(claim))
                note = f"the text says {said.text}, the values of {'.'.join(fact.path)} add up to {whole.normalize():f}"
                return None if given else Ruling("suspected", fact.pointer, None, "not_found", note)
        return None

    def _find_inside(self, said: Quantity) -> set[int]:
        """Return the ids of the facts of the entities that a quantity's clause is about."""
        at = bisect_right(self._clauses, said.start, key=_get_start) - 1
        subjects = self._clauses[at].subjects if at >= 0 and said.start < self._clauses[at].end else ()
        return {id(fact) for entity in subjects for fact in entity.inside[:MAX_INSIDE]}


def _get_start(clause: Clause) -> int:
    return clause.start
