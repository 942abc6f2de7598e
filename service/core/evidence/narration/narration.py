"""Check what a text claims against what tools returned: bind each quantity to a field of a record, or leave it alone.

A claim is contradicted only if its words name a field (and the record, where there are several), all values of that
field differ from it under every transform, and nothing else accounts for the number. Everything else stays open.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from service.core.evidence.arithmetic.accounts import Accounts
from service.core.evidence.arithmetic.asked import is_english
from service.core.evidence.arithmetic.holding import derive_number, list_numbers, read_number
from service.core.evidence.arithmetic.transforms import is_minor, may_be_minor, relate
from service.core.evidence.facts.fact_index import FactGroup, FactIndex, read_shape
from service.core.evidence.facts.facts import Fact
from service.core.evidence.facts.field_units import MONEY
from service.core.evidence.narration.binding import bind, is_about
from service.core.evidence.narration.calendar import check_weekdays
from service.core.evidence.narration.codes import check_codes
from service.core.evidence.narration.counted_kinds import check_counted_kinds
from service.core.evidence.narration.entities import MAX_FAMILY, NarrowedFacts, narrow
from service.core.evidence.narration.mixed_records import check_mixed_records
from service.core.evidence.narration.refuting import compare, refute, refute_end
from service.core.evidence.narration.retelling import Retelling
from service.core.evidence.narration.series import check_series
from service.core.evidence.narration.superlatives import check_superlatives
from service.core.evidence.narration.tallies import check_tallies
from service.core.evidence.narration.unaccounted import Unaccounted
from service.core.evidence.narration.understood import Understanding
from service.core.evidence.narration.verdicts import (
    OPEN,
    ClaimVerdict,
    Ruling,
    Saying,
    Utterances,
    build_contradiction,
    build_suspicion,
)
from service.core.evidence.narration.whole_moments import check_whole_moments
from service.core.evidence.reading.quantities import Quantity, list_significant_digits
from service.core.evidence.reading.words import split_tokens, split_words
from service.core.evidence.sentences.claims import COMPARING, DENYING, LOOSE, Claim, find_claims
from service.core.evidence.sentences.clauses import ClauseReader
from service.core.evidence.sentences.mentions import Clause

FEW = 2
"""Among at most this many values, a match counts as the value that is meant."""
_LIKE = split_words("like similar")
_CHANCE = 2
"""Fewer significant digits than this agree by chance."""
MIN_CODE = 6
"""Fewest characters of a code; anything shorter may be a name like `H264`."""
_BESIDE = 4
_POWERS = (-3, -2, -1, 1, 2, 3, 4)


def check_text(
    text: str,
    path: str,
    said: Sequence[Quantity],
    fact_index: FactIndex,
    utterances: Utterances,
    *,
    complete: bool = True,
) -> list[ClaimVerdict]:
    """Return the verdict on each claim of a text, in text order. Statements without a quantity are claims too.

    `said`: the quantities of the text. `complete`: the index holds everything that results say, so that a value is
    suspect if nothing accounts for it.
    """
    claims = {(claim.quantity.start, claim.quantity.end): claim for claim in find_claims(text, said)}
    bound = {place: _check(claim, text, fact_index, utterances) for place, claim in claims.items()}
    found = {**bound}
    clauses = ClauseReader(fact_index.holdings, utterances.today).read(text, said)
    accounts = Accounts(fact_index.holdings, utterances, said, english=is_english(text))
    for saying in _iter_sayings(text, said, fact_index, utterances, accounts, clauses):
        place, claim = (saying.start, saying.end), claims.get((saying.start, saying.end))
        composite = claim is not None and claim.composite
        named = claim is not None and claim.quantity.kind == "identifier"
        firm = named or saying.firm
        if (saying.firm or not composite) and _outweighs(saying.ruling, found.get(place), bound.get(place), firm=firm):
            found[place] = saying.ruling
    for saying in check_codes(text, clauses, fact_index.holdings, utterances) if complete else ():
        if found.get((saying.start, saying.end), OPEN).verdict != "contradicted":
            found[saying.start, saying.end] = saying.ruling
    understanding = Understanding(text, clauses, fact_index)
    weighed = {place: understanding.weigh(*place, found[place]) for place in sorted(found)}
    if complete:
        unaccounted = Unaccounted(fact_index.holdings, utterances, accounts, clauses)
        left = [place for place in claims if weighed[place].verdict in ("not_checkable", "unsupported", "supported")]
        weighed |= {place: unaccounted.weigh(claims[place], weighed[place]) for place in left}
    return [_build_verdict(path, text, place, ruling) for place, ruling in weighed.items()]


def _build_verdict(path: str, text: str, place: tuple[int, int], ruling: Ruling) -> ClaimVerdict:
    start, end = place
    found = ruling.verdict, ruling.source, ruling.transform, ruling.code, ruling.note
    return ClaimVerdict(path, start, end, text[start:end], *found)


def _outweighs(ruling: Ruling, before: Ruling | None, bound: Ruling | None, *, firm: bool) -> bool:
    """Whether a clause's ruling replaces the earlier one for the same place.

    It does if there was none, if it settles an open or unsupported one, or if it clears a contradiction that came from binding.
    """
    if before is None:
        return ruling.verdict != "not_checkable"
    if ruling.verdict in ("supported", "not_checkable"):
        return before.verdict == ("contradicted" if bound is before else "") or (
            ruling.verdict == "supported" and before.verdict in ("not_checkable", "unsupported")
        )
    return before.verdict in ("not_checkable", "unsupported") or (firm and before.verdict == "supported")


def _iter_sayings(
    text: str,
    said: Sequence[Quantity],
    fact_index: FactIndex,
    utterances: Utterances,
    accounts: Accounts,
    all_clauses: Sequence[Clause],
) -> Iterator[Saying]:
    """Yield the rulings on what the clauses of a text say about the entities they mention."""
    holdings = fact_index.holdings
    clauses = [plain for clause in all_clauses if (plain := clause.keep_plain()) is not None]
    yield from check_weekdays(text, said, holdings, utterances.today)
    yield from check_mixed_records(text, clauses, holdings, utterances)
    yield from check_whole_moments(text, clauses, holdings, utterances)
    yield from check_counted_kinds(clauses, holdings, utterances)
    yield from Retelling(holdings, utterances, accounts, clauses).check()
    yield from check_superlatives(clauses, holdings)
    yield from check_tallies(clauses, holdings, fact_index.collections)


def _check(claim: Claim, text: str, fact_index: FactIndex, utterances: Utterances) -> Ruling:
    quantity = claim.quantity
    if quantity.kind == "boolean" and not claim.exact:
        return OPEN  # only the sentence as a whole can be checked
    if quantity.kind == "identifier":
        return _check_identifier(claim, fact_index, utterances)
    series_ruling = check_series(claim, fact_index, utterances)
    if series_ruling is not None:
        return series_ruling
    groups = bind(claim, fact_index)
    ruling = _check_bound(claim, text, groups, fact_index, utterances) if groups else None
    ruling = ruling or _check_unbound(claim, fact_index, utterances)
    return ruling if ruling.verdict != "unsupported" else OPEN


def _check_bound(
    claim: Claim, text: str, groups: Sequence[FactGroup], fact_index: FactIndex, utterances: Utterances
) -> Ruling:
    family = fact_index.build_family(groups)
    if len(family.facts) > MAX_FAMILY:
        return OPEN
    fact_index.look(family)
    narrowed = narrow(family, claim, text)
    return (
        compare(claim, narrowed, groups)
        or refute_end(claim, narrowed, groups, utterances)
        or _find_support(claim, narrowed, fact_index)
        or refute(claim, narrowed, groups, fact_index, utterances)
    )


def _check_identifier(claim: Claim, fact_index: FactIndex, utterances: Utterances) -> Ruling:
    """Rule on an identifier: supported if results hold it, a slip or a suspicion if they hold a similar one, else open."""
    held = fact_index.find_holding(claim.quantity.value)
    if held or utterances.has(claim.quantity):
        return Ruling("supported", held[0].pointer, "same") if held else OPEN
    slip = fact_index.find_near(claim.quantity.text)
    shape, near = read_shape(claim.quantity.text), {*claim.left[-_BESIDE:], *claim.right}
    if DENYING & near:
        return OPEN
    if slip is not None:
        code = len(claim.quantity.text) >= MIN_CODE and claim.quantity.text.isupper()
        compared = (COMPARING | _LIKE) & near or "would" in claim.right
        build = build_contradiction if code and not compared else build_suspicion
        return build(claim, slip, "digit_flip")._replace(words=None)
    if _is_cased_otherwise(claim.quantity.text, fact_index):
        return OPEN
    kin = fact_index.shapes.get(shape) if claim.plain else None
    return build_suspicion(claim, kin, "not_found")._replace(words=None) if kin is not None else OPEN


def _is_cased_otherwise(text: str, fact_index: FactIndex) -> bool:
    """Whether results hold an identifier in other letters: `T420` for `t420`."""
    known = fact_index.holdings.once(
        _is_cased_otherwise,
        lambda: {str(value).casefold() for value in fact_index.values if isinstance(value, str)},
    )
    return text.casefold() in known


def _find_support(claim: Claim, narrowed: NarrowedFacts, fact_index: FactIndex) -> Ruling | None:
    """Find the fact that supports a claim. Where any of many values may be meant, one match proves little: it stays open."""
    about, words = is_about(claim), frozenset(split_tokens(claim.sentence))
    for fact in narrowed.facts:
        for held in fact.quantities:
            how = relate(claim.quantity, fact, held, about=about, words=words)
            if how:
                sure = narrowed.settled or len(narrowed.facts) <= FEW or _is_end(claim, fact, narrowed)
                return Ruling("supported" if sure else "not_checkable", fact.pointer, how)
    return _check_count(claim, fact_index) or derive_number(claim, narrowed.facts)


def _is_end(claim: Claim, fact: Fact, narrowed: NarrowedFacts) -> bool:
    """Whether a fact is the end of the range (highest or lowest) that a claim is about."""
    held, number = list_numbers(claim.quantity, narrowed.facts), read_number(claim.quantity, fact)
    return claim.extreme is not None and bool(held) and number == held[-1 if claim.extreme == "highest" else 0]


def _check_count(claim: Claim, fact_index: FactIndex) -> Ruling | None:
    for fact in fact_index.find_counts(claim.label):
        if claim.quantity.value == fact.value:
            return Ruling("supported", fact.pointer, "count")
    return None


def _check_unbound(claim: Claim, fact_index: FactIndex, utterances: Utterances) -> Ruling:
    """Rule on a claim whose words name no field: a count, cents, an amount with a slipped decimal point, or open."""
    quantity = claim.quantity
    counted = _check_count(claim, fact_index)
    if counted is not None:
        return counted
    minor = _find_in_cents(quantity, fact_index)
    if minor is not None:
        return Ruling("supported", minor.pointer, "minor units") if minor.record.collection is None else OPEN
    if utterances.has(quantity) or any(fact_index.find_holding(value) for value in quantity.values):
        return OPEN
    return _find_scale_flip(claim, fact_index) or OPEN


def _find_in_cents(quantity: Quantity, fact_index: FactIndex) -> Fact | None:
    number = quantity.number
    if number is None or quantity.kind != "money":
        return None
    return next((fact for fact in fact_index.find_holding(number * 100) if is_minor(fact)), None)


def _find_scale_flip(claim: Claim, fact_index: FactIndex) -> Ruling | None:
    """Find the one amount of the results with the same digits, a power of ten away."""
    said = claim.quantity.number
    if said is None or claim.quantity.kind != "money" or not claim.plain or LOOSE & claim.words or is_about(claim):
        return None
    if len(list_significant_digits(said)) < _CHANCE or DENYING & {*claim.left, *claim.right}:
        return None
    if not fact_index.has_one_amount:
        return None
    for power in _POWERS:
        for fact in fact_index.find_holding(said.scaleb(power)):
            if may_be_minor(fact, said):
                return OPEN
            if MONEY & {*fact.own, *fact.above} and read_number(claim.quantity, fact) != said:
                return build_contradiction(claim, fact, "scale_flip")
    return None
