"""Suspect values of a text that nothing accounts for: slips and inventions.

Most wrong amounts and moments are in no result, and nobody said them. Seeing that takes no reading of the clause around
them, so every sentence that states something is searched. Such a value is suspected, never proved wrong.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal
from itertools import islice

from service.core.evidence.arithmetic.accounts import Accounts
from service.core.evidence.arithmetic.holding import SUM, read_number
from service.core.evidence.arithmetic.slips import find_kin
from service.core.evidence.arithmetic.transforms import is_other_unit, name_slip
from service.core.evidence.facts.entities import MAX_INSIDE, Holdings
from service.core.evidence.facts.facts import MAX_CELL, Fact
from service.core.evidence.narration.binding import is_about
from service.core.evidence.narration.fitting import is_of_kind, is_typed
from service.core.evidence.narration.verdicts import OPEN, Ruling, Utterances, suspect
from service.core.evidence.reading.quantities import Quantity, list_significant_digits
from service.core.evidence.reading.units import CURRENCIES, CURRENCY_WORDS, is_same_currency
from service.core.evidence.reading.words import split_tokens
from service.core.evidence.sentences.claims import Claim
from service.core.evidence.sentences.mentions import Clause, announces
from service.core.models.lazy import lazy

MIN_DIGITS = {"money": 2, "number": 3, "percent": 3, "duration": 2, "measure": 2}
"""Fewest significant digits of a suspect number, by kind; shorter ones follow by chance from any few others."""
MIN_DIGITS_ALONE = 3
"""Fewest significant digits of a suspect number that resembles none in the results."""
MAX_TYPED = 120
_POUNDS = ("pound", "pounds")
"""Words for both a currency and a mass."""
_YEAR = re.compile(r"(?:19|20)\d\d")
_CURRENCY_NAMES = [*CURRENCY_WORDS.items(), *((code, code) for code in {*CURRENCIES.values()})]
_SLIPPING = frozenset({"number", "money", "percent", "measure", "duration"})
_OF_SUBJECT = frozenset({"number", "duration"})
"""Kinds whose values are so common that only a slip of the clause's own entities counts."""
_KINDS = frozenset({"date", "time", *MIN_DIGITS})


class Unaccounted:
    """Finds values of one text that neither results, nor earlier words, nor arithmetic over both account for."""

    def __init__(
        self, holdings: Holdings, utterances: Utterances, accounts: Accounts, clauses: Sequence[Clause] = ()
    ) -> None:
        self._holdings = holdings
        self._accounts = accounts
        self._utterances = utterances
        self._clauses = clauses

    def weigh(self, claim: Claim, ruling: Ruling) -> Ruling:
        """Refine the ruling on an open or unsupported claim: suspect it if nothing accounts for its value."""
        said = claim.quantity
        if self._is_cut or not _is_stated(claim):
            return ruling
        if said.kind == "money" and (other := self._find_other_currency(said)) is not None:
            return suspect(said.text, other, "wrong_unit")
        if said.kind == "measure" and (other := self._find_other_unit(claim)) is not None:
            return suspect(said.text, other, "wrong_unit")
        if (slip := self._find_slip(claim)) is not None:
            return suspect(said.text, slip, "not_found")
        if not _is_telling(claim):
            return ruling
        if self._is_accounted_for(claim) or (
            said.text.lower().endswith(_POUNDS)
            and self._is_accounted_for(claim._replace(quantity=said._replace(kind="measure", unit="lb")))
        ):
            return ruling if ruling.verdict == "not_checkable" else OPEN
        return self._suspect(said) or Ruling("unsupported")

    def _find_other_unit(self, claim: Claim) -> Fact | None:
        """Find the value that a text gives in another unit without converting it."""
        said = claim.quantity
        other = next((fact for fact in self._find_typed(said) if is_other_unit(said, fact)), None)
        said_before = self._utterances.has(said) or self._accounts.holds(claim.statement, rough=is_about(claim))
        return None if other is None or said_before else other

    def _find_slip(self, claim: Claim) -> Fact | None:
        """Find the value that a number is a slip of, unless the number follows from others that belong together."""
        said, rough = claim.quantity, is_about(claim)
        if said.kind not in _SLIPPING or said.number is None or self._utterances.has(said):
            return None
        facts = self._find_typed(said)
        if said.kind in _OF_SUBJECT:
            inside = self._find_inside(said)
            facts = [fact for fact in facts if id(fact) in inside]
        slip = next((fact for fact in facts if _is_slip(said, said.number, fact)), None)
        if slip is None and not SUM.isdisjoint(split_tokens(claim.sentence)):
            slip = self._find_total(said, said.number)
        if slip is None:
            return None
        held = read_number(said, slip)
        turned = held is not None and name_slip(said.number, held) == "sign_flip"  # sums leave out signs
        give = self._accounts.give_at_once if turned else self._accounts.give_closely
        return None if give(claim.statement, rough=rough) else slip

    def _find_total(self, said: Quantity, number: Decimal) -> Fact | None:
        """Find a column whose total a number is a slip of."""
        for total, fact in self._accounts.find_totals(said):
            if name_slip(abs(number), Decimal(str(round(total, 4)))) in ("digit_flip", "scale_flip"):
                return fact
        return None

    def _find_inside(self, said: Quantity) -> set[int]:
        """Return the ids of the facts of the entities that a quantity's clause is about."""
        at = bisect_right(self._clauses, said.start, key=_get_start) - 1
        subjects = self._clauses[at].subjects if at >= 0 and said.start < self._clauses[at].end else ()
        return {id(fact) for entity in subjects for fact in entity.inside[:MAX_INSIDE]}

    def _find_typed(self, said: Quantity) -> list[Fact]:
        return self._holdings.once((Unaccounted, said.kind, said.unit), lambda: self._list_typed(said))

    def _is_accounted_for(self, claim: Claim) -> bool:
        return self._utterances.has(claim.quantity) or self._accounts.give(claim.statement, rough=is_about(claim))

    def _find_other_currency(self, said: Quantity) -> Fact | None:
        """Return an amount of the results in their own currency, if nobody ever named the currency that is said."""
        known = self._currencies
        if said.unit == "?" or not known or any(is_same_currency(said.unit, one) for one in known):
            return None
        if any(self._utterances.words(name) for name, code in _CURRENCY_NAMES if code == said.unit):
            return None
        return next(iter(known.values()))

    def _list_typed(self, said: Quantity) -> list[Fact]:
        """List facts whose own unit or name says that they are of a quantity's kind."""
        return [*islice((f for f in self._holdings.facts if is_of_kind(said, f) and is_typed(said, f)), MAX_TYPED)]

    @lazy
    def _currencies(self) -> dict[str, Fact]:
        """The currencies of the results, each with an amount in it; {} if somebody said an amount in another one."""
        found: dict[str, Fact] = {}
        for fact in self._holdings.facts:
            for held in fact.quantities:
                code = held.unit if held.kind == "money" else fact.counted.currency
                if code and code != "?":
                    found.setdefault(code, fact)
            if isinstance(fact.value, str) and (code := CURRENCIES.get(fact.value, "")):
                found.setdefault(code, fact)
        others = {quantity.unit for quantity in self._utterances.quantities() if quantity.kind == "money"}
        return found if all(any(is_same_currency(one, code) for code in found) for one in others) else {}

    @lazy
    def _is_cut(self) -> bool:
        """Whether some text of a result was read only in part, so that absence says nothing."""
        return any(isinstance(fact.value, str) and len(fact.value) > MAX_CELL for fact in self._holdings.facts)

    def _suspect(self, said: Quantity) -> Ruling | None:
        """Suspect a value; a short number only if it is a slip of one that results hold."""
        kin = find_kin(said, self._find_typed(said))
        if kin is not None:
            return suspect(said.text, kin, "not_found")
        if said.number is not None and len(list_significant_digits(said.number)) < MIN_DIGITS_ALONE:
            return None
        note = f"the text says {said.text}, and neither a result nor anything said before accounts for it"
        return Ruling("suspected", None, None, "not_found", note)


def _is_slip(said: Quantity, number: Decimal, fact: Fact) -> bool:
    """Whether a number is a fact's with another digit, point or sign; a digit alone resembles any other."""
    held = read_number(said, fact)
    return held is not None and len(list_significant_digits(held)) > 1 and name_slip(number, held) != "wrong_value"


def _get_start(clause: Clause) -> int:
    return clause.start


def _is_stated(claim: Claim) -> bool:
    """Whether a sentence states something: it neither asks nor announces."""
    return not claim.sentence.rstrip().endswith("?") and not announces(claim.sentence)


def _is_telling(claim: Claim) -> bool:
    """Whether the absence of a claim's value says something: it has too many digits to follow by chance."""
    said = claim.quantity
    if said.kind not in _KINDS:
        return False
    if said.number is None:
        return True
    bare = said.kind == "number" and (claim.composite or _YEAR.fullmatch(said.text) is not None)
    return not bare and len(list_significant_digits(said.number)) >= MIN_DIGITS[said.kind]
