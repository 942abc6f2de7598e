"""Suspect values of a text that nothing accounts for: slips and inventions.

Most wrong amounts and moments are in no result, and nobody said them. Seeing that takes no reading of the clause around
them, so every sentence that states something is searched. Such a value is suspected, never proved wrong.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from service.core.evidence.arithmetic.accounts import Accounts
from service.core.evidence.arithmetic.slips import find_kin, is_near
from service.core.evidence.arithmetic.transforms import is_other_unit
from service.core.evidence.facts.entities import Holdings
from service.core.evidence.facts.facts import MAX_CELL, Fact
from service.core.evidence.narration.binding import is_about
from service.core.evidence.narration.fitting import list_typed, list_typed_numbers
from service.core.evidence.narration.slipped_numbers import SlippedNumbers
from service.core.evidence.narration.verdicts import OPEN, Ruling, Utterances, suspect
from service.core.evidence.reading.quantities import Quantity, list_significant_digits
from service.core.evidence.reading.units import CURRENCIES, CURRENCY_WORDS, is_same_currency
from service.core.evidence.sentences.claims import Claim
from service.core.evidence.sentences.mentions import Clause, announces
from service.core.models.lazy import lazy

MIN_DIGITS = {"money": 2, "number": 3, "percent": 3, "duration": 2, "measure": 2}
"""Fewest significant digits of a suspect number, by kind; shorter ones follow by chance from any few others."""
MIN_DIGITS_ALONE = 3
"""Fewest significant digits of a suspect number that resembles none in the results."""
MIN_AMOUNTS = 3
"""Fewest amounts of a text of which one in another currency stands out."""
_POUNDS = ("pound", "pounds")
"""Words for both a currency and a mass."""
_YEAR = re.compile(r"(?:19|20)\d\d")
_CURRENCY_NAMES = [*CURRENCY_WORDS.items(), *((code, code) for code in {*CURRENCIES.values()})]
_KINDS = frozenset({"date", "time", *MIN_DIGITS})


class Unaccounted:
    """Finds values of one text that neither results, nor earlier words, nor arithmetic over both account for."""

    def __init__(
        self, holdings: Holdings, utterances: Utterances, accounts: Accounts, clauses: Sequence[Clause]
    ) -> None:
        self._holdings = holdings
        self._accounts = accounts
        self._utterances = utterances
        self._said = accounts.said
        self._slips = SlippedNumbers(holdings, utterances, accounts, clauses)

    def weigh(self, claim: Claim, ruling: Ruling) -> Ruling:
        """Refine a ruling: suspect an amount in a currency that nobody named, and what nothing supports or accounts for."""
        said = claim.quantity
        if self._is_cut or not _is_stated(claim):
            return ruling
        foreign = self._check_currency(said) if said.kind == "money" else None
        if foreign is not None or ruling.verdict == "supported":
            return foreign or ruling
        slip = self._slips.weigh(claim)
        if slip is not None:
            return slip
        if not _is_telling(claim):
            return ruling
        if self._is_accounted_for(claim) or (
            said.text.lower().endswith(_POUNDS)
            and self._is_accounted_for(claim._replace(quantity=said._replace(kind="measure", unit="lb")))
        ):
            return ruling if ruling.verdict == "not_checkable" else OPEN
        return self._suspect(said) or Ruling("unsupported")

    def _is_accounted_for(self, claim: Claim) -> bool:
        return self._utterances.has(claim.quantity) or self._accounts.give(claim.statement, rough=is_about(claim))

    def _check_currency(self, said: Quantity) -> Ruling | None:
        """Suspect a currency that nobody ever named: neither that of the results nor that of the text's other amounts."""
        known = self._currencies
        if said.unit == "?" or any(is_same_currency(said.unit, one) for one in known or ()):
            return None
        if known is None or any(self._utterances.words(name) for name, code in _CURRENCY_NAMES if code == said.unit):
            return None
        if known:
            return suspect(said.text, next(iter(known.values())), "wrong_unit")
        alike = [one for one in self._amounts if is_same_currency(one.unit, said.unit)]
        others = {one.unit for one in self._amounts} - {one.unit for one in alike}
        if len(alike) > 1 or len(others) != 1 or len(self._amounts) < MIN_AMOUNTS:
            return None
        note = f"the text says {said.text}, and all its other amounts are in {others.pop()}"
        return Ruling("suspected", None, None, "wrong_unit", note)

    @lazy
    def _amounts(self) -> list[Quantity]:
        """The amounts of the text with a currency of their own."""
        return [one for one in self._said if one.kind == "money" and one.unit != "?"]

    @lazy
    def _currencies(self) -> dict[str, Fact] | None:
        """The currencies of the results, each with an amount in it; None if somebody said an amount in another one."""
        found: dict[str, Fact] = {}
        for fact in self._holdings.facts:
            for held in fact.quantities:
                code = held.unit if held.kind == "money" else fact.counted.currency
                if code and code != "?":
                    found.setdefault(code, fact)
            if isinstance(fact.value, str) and (code := CURRENCIES.get(fact.value, "")):
                found.setdefault(code, fact)
        others = {quantity.unit for quantity in self._utterances.quantities() if quantity.kind == "money"}
        return found if all(any(is_same_currency(one, code) for code in found) for one in others) else None

    @lazy
    def _is_cut(self) -> bool:
        """Whether some text of a result was read only in part, so that absence says nothing."""
        return any(isinstance(fact.value, str) and len(fact.value) > MAX_CELL for fact in self._holdings.facts)

    def _find_kin(self, said: Quantity) -> Fact | None:
        """Find a held value that is close to what is said, or the same number in another unit."""
        if said.number is None:
            return find_kin(said, list_typed(said, self._holdings))
        held = list_typed_numbers(said, self._holdings)
        near = (fact for fact, one in held if is_near(said.number, one) or is_other_unit(said, fact))
        return next(near, None)

    def _suspect(self, said: Quantity) -> Ruling | None:
        """Suspect a value; a short number only if it is a slip of one that results hold."""
        kin = self._find_kin(said)
        if kin is not None:
            return suspect(said.text, kin, "not_found")
        if said.number is not None and len(list_significant_digits(said.number)) < MIN_DIGITS_ALONE:
            return None
        note = f"the text says {said.text}, and neither a result nor anything said before accounts for it"
        return Ruling("suspected", None, None, "not_found", note)


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
