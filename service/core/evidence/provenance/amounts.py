"""Numbers among the arguments: found, derived, or an order of magnitude off what the user said."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import islice

from service.core.evidence.provenance.located import LeafOrigin, contradict, leave_open, locate_at
from service.core.evidence.provenance.parameters import CallParameter
from service.core.evidence.provenance.sources import Mention, SourceIndex
from service.core.evidence.reading.quantities import list_significant_digits
from service.core.evidence.reading.units import UNITS, convert_to_base

HUNDRED = Decimal(100)
_FEW = 400
"""Among more numbers than these some sum fits anything."""


def locate_number(path: str, value: Decimal, parameter: CallParameter, sources: SourceIndex, before: int) -> LeafOrigin:
    """A number: as it was given, in other units, as a sum or a difference; else contradicted or open."""
    found = sources.find_mentions(value, before)
    stated = [m for m in sources.list_said_before(before) if m.quantity.number is not None]
    if found and not (parameter.is_minor and _says_whole(found, value)):
        return locate_at(path, found[0].place)
    derived = _locate_converted(path, value, stated) or _locate_minor(path, value, parameter, sources, before)
    if derived is not None:
        return derived
    off = _find_off_by_tens(path, value, parameter, stated)
    if off is not None:
        return off
    return _locate_sum(path, value, sources, before) or leave_open(path, "a number that no text and no result holds")


def _says_whole(found: Sequence[Mention], value: Decimal) -> bool:
    """Whether a number is only there as whole units of money: 54 in `$54`."""
    return all(m.quantity.kind == "money" and m.quantity.value == value for m in found)


def _locate_minor(
    path: str, value: Decimal, parameter: CallParameter, sources: SourceIndex, before: int
) -> LeafOrigin | None:
    """Cents for whole units and the other way round. Without a word of cents, only from whole units said to cents."""
    for other, name in ((value / HUNDRED, "minor units"), (value * HUNDRED, "whole units")):
        for mention in sources.find_mentions(other, before):
            cents = parameter.is_minor if name == "minor units" else _is_minor(mention)
            if cents and (other or value):
                return locate_at(path, mention.place, name)
    return None


def _is_minor(mention: Mention) -> bool:
    return CallParameter(mention.place.keys[-1] if mention.place.keys else "", {}).is_minor


def _locate_converted(path: str, value: Decimal, stated: Iterable[Mention]) -> LeafOrigin | None:
    """Other units of the same thing: 120 for two hours, 0.15 for 15%."""
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


def _find_off_by_tens(
    path: str, value: Decimal, parameter: CallParameter, stated: Sequence[Mention]
) -> LeafOrigin | None:
    """The digits of the one amount the user stated, with the point elsewhere."""
    money = [m for m in stated if m.quantity.kind == "money"]
    amounts = money or [m for m in stated if m.quantity.kind == "number"]
    if not (parameter.is_amount or parameter.is_minor or parameter.is_major) or not value:
        return None
    for mention in amounts:
        said = mention.quantity.number
        if said is None or not said or (not money and len(list_significant_digits(said)) < 2):
            continue
        if said == value and parameter.is_minor and money:
            note = f"the user said {mention.quantity.text}, and {value} in cents is a hundredth of it"
            return contradict(path, mention.place, "order_of_magnitude", note)
        if list_significant_digits(said) == list_significant_digits(value) and abs(said) != abs(value):
            return _judge_tens(path, value, said, parameter, mention)
    return None


def _judge_tens(path: str, value: Decimal, said: Decimal, parameter: CallParameter, mention: Mention) -> LeafOrigin:
    if abs(value) == abs(said) * HUNDRED and not parameter.is_major:
        return locate_at(path, mention.place, "minor units, perhaps")  # the schema leaves open whether it wants cents
    note = f"the user said {mention.quantity.text}, the argument is {value}"
    return contradict(path, mention.place, "order_of_magnitude", note)


def _locate_sum(path: str, value: Decimal, sources: SourceIndex, before: int) -> LeafOrigin | None:
    """Of two numbers, if the number says enough for that to be no accident."""
    if len(list_significant_digits(value)) < 2 or abs(value) < HUNDRED // 5:
        return None
    known = list(islice(sources.iter_numbers(before), _FEW + 1))
    if len(known) > _FEW:
        return None
    distinct = set(known)
    for one in known:
        for other, name in ((value - one, "sum"), (one - value, "difference")):
            if other in distinct and other and one != value:
                return locate_at(path, sources.find_mentions(one, before)[0].place, name)
    return None
