"""Locate numbers among the arguments: found, derived, or an order of magnitude off what the user said."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from itertools import islice

from service.core.evidence.provenance.located import LeafOrigin, contradict, leave_open, locate_at, suspect
from service.core.evidence.provenance.parameters import SCALES, CallParameter
from service.core.evidence.provenance.sources import Mention, SourceIndex
from service.core.evidence.reading.quantities import Quantity, find_minor_factor, list_significant_digits
from service.core.evidence.reading.units import UNITS, convert_to_base
from service.core.evidence.reading.words import split_words

HUNDRED = Decimal(100)
_FEW = 400
"""Among more numbers than this, some sum fits any value."""
_MAX_PERCENTS = 8
_HALF_A_CENT = Decimal("0.005")
_TENTHS = split_words("tenth tenths tenfold hundredth hundredths hundredfold thousandth")


def locate_number(path: str, value: Decimal, parameter: CallParameter, sources: SourceIndex, before: int) -> LeafOrigin:
    """Locate a number: as given, in other units, or computed from others; else suspect it, contradict it or leave it open."""
    found = sources.find_mentions(value, before)
    stated = [m for m in sources.list_said_before(before) if m.quantity.number is not None]
    if found and not (parameter.is_surely_minor and _says_whole(found, value)):
        return locate_at(path, found[0].place)
    derived = _locate_converted(path, value, stated) or _locate_minor(path, value, parameter, sources, before)
    for target in (value,) if derived or parameter.is_major else (value, value / HUNDRED):
        derived = derived or _locate_worked_out(path, target, stated, sources, before)
    off = derived or _find_off_by_tens(path, value, parameter, sources, stated)
    return off or leave_open(path, "a number that no text and no result holds")


def _says_whole(found: Sequence[Mention], value: Decimal) -> bool:
    """Whether a number is only found as whole units of a currency with cents: 54 in `$54`, not 54 in `¥54`."""
    return all(_is_whole(m.quantity) and m.quantity.value == value for m in found)


def _is_whole(quantity: Quantity) -> bool:
    return quantity.kind == "money" and find_minor_factor(quantity.unit) != 1


def _locate_minor(
    path: str, value: Decimal, parameter: CallParameter, sources: SourceIndex, before: int
) -> LeafOrigin | None:
    """Find whole units for an argument in cents, or cents for one in whole units; the side in cents must say so."""
    for other, name in ((value / HUNDRED, "minor units"), (value * HUNDRED, "whole units")):
        for mention in sources.find_mentions(other, before):
            cents = parameter.is_minor if name == "minor units" else _is_minor(mention)
            if cents and (other or value):
                return locate_at(path, mention.place, name)
    return None


def _is_minor(mention: Mention) -> bool:
    return CallParameter(mention.place.keys[-1] if mention.place.keys else "", {}).is_minor


def _locate_converted(path: str, value: Decimal, stated: Iterable[Mention]) -> LeafOrigin | None:
    """Find the same quantity in another unit: 120 for two hours, 0.15 for 15%."""
    for mention in stated:
        quantity = mention.quantity
        number = quantity.number
        if number is None:
            continue
        if quantity.kind == "percent" and number / HUNDRED == value:
            return locate_at(path, mention.place, "percent to ratio")
        if quantity.kind in ("duration", "measure") and _is_other_unit(value, number, quantity.unit):
            return locate_at(path, mention.place, "unit")
    return None


def _is_other_unit(value: Decimal, number: Decimal, unit: str) -> bool:
    mine = UNITS.get(unit)
    if mine is None or not value:
        return False
    base = convert_to_base(number, mine)
    return any(
        abs(convert_to_base(value, other) - base) <= abs(base) / 200
        for other in set(UNITS.values())
        if other.dimension == mine.dimension and other != mine
    )


def _locate_worked_out(
    path: str, value: Decimal, stated: Sequence[Mention], sources: SourceIndex, before: int
) -> LeafOrigin | None:
    """Find a sum or difference, a percentage, a multiple or a part; not among so many numbers that anything fits."""
    if not value:
        return None
    known = set(islice(sources.iter_numbers(before), _FEW + 1))
    if len(known) > _FEW:
        return None
    found = (
        _find_terms(value, known) or _find_share(value, known, sources, before) or _find_factor(value, known, stated)
    )
    return None if found is None else locate_at(path, sources.find_mentions(found[0], before)[0].place, found[1])


def _find_terms(value: Decimal, known: Collection[Decimal]) -> tuple[Decimal, str] | None:
    """Find a term of the sum or difference that a number is, if it has enough digits for that to be no accident."""
    if len(list_significant_digits(value)) < 2 or abs(value) < HUNDRED // 5:
        return None
    pairs = ((one, other, name) for one in known for other, name in ((value - one, "sum"), (one - value, "difference")))
    return next(((one, name) for one, other, name in pairs if other in known and other and one != value), None)


def _find_share(
    value: Decimal, known: Collection[Decimal], sources: SourceIndex, before: int
) -> tuple[Decimal, str] | None:
    """Find the number that this is a given percentage of, more than or less than, to within half a cent."""
    percents, ordered = {m.quantity.number for m in sources.percents if m.place.message < before}, sorted(known)
    for percent in list(filter(None, percents))[:_MAX_PERCENTS]:
        ratio = percent / HUNDRED
        for factor in (ratio, 1 - ratio, 1 + ratio):
            at = bisect_left(ordered, (value - _HALF_A_CENT) / factor) if factor > 0 else len(ordered)
            for one in ordered[at : at + 2]:
                if one != percent and abs(one * factor - value) <= _HALF_A_CENT:
                    return one, "percentage"
    return None


def _find_factor(value: Decimal, known: Collection[Decimal], stated: Sequence[Mention]) -> tuple[Decimal, str] | None:
    """Find the number that this is a multiple or a part of, by a factor that the user said."""
    for factor in {m.quantity.number or Decimal(0) for m in stated} - {Decimal(0), Decimal(1)}:
        for one, name in ((value / factor, "multiple"), (value * factor, "part")):
            if one in known and one != 1:
                return one, name
    return None


def _find_off_by_tens(
    path: str, value: Decimal, parameter: CallParameter, sources: SourceIndex, stated: Sequence[Mention]
) -> LeafOrigin | None:
    """Find the amount of the user's that has the same digits with the decimal point elsewhere."""
    money = [m for m in stated if m.quantity.kind == "money"]
    amounts = money or [m for m in stated if m.quantity.kind == "number"]
    if not (parameter.is_amount or parameter.is_minor or parameter.is_major) or not value:
        return None
    for mention in amounts:
        said = mention.quantity.number
        if said is None or not said or (not money and len(list_significant_digits(said)) < 2):
            continue
        sure = len({m.quantity.values for m in money}) == 1 and _is_plain(parameter, sources, value / said)
        if said == value and parameter.is_surely_minor and _is_whole(mention.quantity):
            note = f"the user said {mention.quantity.text}, and {value} in cents is a hundredth of it"
            return _judge(path, mention, note, sure=sure)
        if list_significant_digits(said) == list_significant_digits(value) and abs(said) != abs(value):
            if abs(value) == abs(said) * HUNDRED and not parameter.is_major:
                # The schema leaves open whether it wants cents.
                return locate_at(path, mention.place, "minor units, perhaps")
            note = f"the user said {mention.quantity.text}, the argument is {value}"
            return _judge(path, mention, note, sure=sure)
    return None


def _is_plain(parameter: CallParameter, sources: SourceIndex, ratio: Decimal) -> bool:
    """Whether nothing mentions units other than the parameter's own, and the user mentions no tenths."""
    if parameter.is_minor:
        return True
    if _TENTHS & sources.user_words or SCALES & sources.system_words:
        return False
    return not parameter.is_scaled and (parameter.is_major or abs(ratio) != HUNDRED)


def _judge(path: str, mention: Mention, note: str, *, sure: bool) -> LeafOrigin:
    if sure:
        return contradict(path, mention.place, "order_of_magnitude", note)
    return suspect(path, note, mention.place)
