"""Values of a text that nothing accounts for: a slip, or made up.

Most wrong amounts and moments stand in no result, and nobody said them. That needs no reading of the clause around
them, so it is looked for in every sentence that states something; it is suspected, never proved.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from service.core.evidence.arithmetic.accounts import Accounts
from service.core.evidence.arithmetic.slips import find_kin
from service.core.evidence.facts.facts import MAX_CELL
from service.core.evidence.facts.held import Holdings
from service.core.evidence.narration.binding import is_about
from service.core.evidence.narration.fitting import is_of_kind, is_typed
from service.core.evidence.narration.verdicts import Ruling, Utterances, suspect
from service.core.evidence.reading.quantities import Quantity, list_significant_digits
from service.core.evidence.sentences.claims import Claim
from service.core.evidence.sentences.mentions import announces
from service.core.models.lazy import lazy

MIN_DIGITS = {"money": 2, "number": 3, "percent": 3, "duration": 2, "measure": 2}
"""Significant digits of numbers that are looked for; shorter ones are had by chance from any few others."""
MAX_TYPED = 400
_YEAR = re.compile(r"(?:19|20)\d\d")
_KINDS = frozenset({"date", "time", *MIN_DIGITS})


class Unaccounted:
    """Looks for values of one text that neither results, nor words before it, nor arithmetic over both account for."""

    def __init__(self, holdings: Holdings, utterances: Utterances, said: Sequence[Quantity]) -> None:
        self._holdings = holdings
        self._accounts = Accounts(holdings, utterances.quantities(), said, utterances.today)
        self._utterances = utterances

    def check(self, claim: Claim) -> Ruling | None:
        """The suspicion that a claim's value came from nowhere; None where something accounts for it."""
        said = claim.quantity
        if not _is_telling(claim) or self._is_cut or self._utterances.has(said):
            return None
        return None if self._accounts.give(claim, rough=is_about(claim)) else self._suspect(said)

    @lazy
    def _is_cut(self) -> bool:
        """Whether a text of a result is longer than what is read of it, so that absence says nothing."""
        return any(isinstance(fact.value, str) and len(fact.value) > MAX_CELL for fact in self._holdings.facts)

    def _suspect(self, said: Quantity) -> Ruling:
        typed = islice((f for f in self._holdings.facts if is_of_kind(said, f) and is_typed(said, f)), MAX_TYPED)
        kin = find_kin(said, typed)
        if kin is not None:
            return suspect(said.text, kin, "not_found")
        note = f"the text says {said.text}, and neither a result nor anything said before accounts for it"
        return Ruling("suspected", None, None, "not_found", note)


def _is_telling(claim: Claim) -> bool:
    """Whether the absence of a claim's value says something: it is stated, and no few digits had by chance."""
    said = claim.quantity
    if said.kind not in _KINDS or claim.sentence.rstrip().endswith("?") or announces(claim.sentence):
        return False
    if said.number is None:
        return True
    bare = said.kind == "number" and (claim.composite or _YEAR.fullmatch(said.text) is not None)
    return not bare and len(list_significant_digits(said.number)) >= MIN_DIGITS[said.kind]
