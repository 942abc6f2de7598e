"""Who speaks: the plain voice has the wordings alone, the free one also those that are shorter, looser or chattier.

>>> FREE.money(1250.4, "EUR").loose[2:]
('just over €1,250', 'around €1.25k')
>>> FREE.duration(90, "min").loose
('an hour and a half',)
>>> FREE.time(datetime(2026, 5, 4, 17, 45)).loose
('quarter to six in the afternoon',)
>>> FREE.relative(date(2026, 5, 6), date(2026, 5, 4)).loose
('on 6 May', 'on Wednesday, May 6', 'the day after tomorrow', 'this Wednesday')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from math import ceil, floor

from tests.benchmarks.slips import wording
from tests.benchmarks.slips.wording import CURRENCIES, Wordings

_MORE_CURRENCIES = {"CHF": ("CHF ", "Swiss francs"), "CAD": ("C$", "Canadian dollars")}
_MORE_UNITS = {
    "kWh": "kilowatt-hours",
    "MWh": "megawatt-hours",
    "kW": "kilowatts",
    "MW": "megawatts",
    "GB": "gigabytes",
    "MB": "megabytes",
    "ms": "milliseconds",
    "s": "seconds",
    "l": "litres",
    "m³": "cubic metres",
}
_SHARES = {20: "a fifth", 25: "a quarter", 100 / 3: "a third", 50: "half", 200 / 3: "two thirds", 75: "three quarters"}
_SPANS = {  # minutes, then days
    "min": {
        15: "a quarter of an hour",
        30: "half an hour",
        45: "three quarters of an hour",
        60: "an hour",
        90: "an hour and a half",
        150: "two and a half hours",
    },
    "days": {7: "a week", 14: "two weeks", 21: "three weeks"},
    "h": {24: "a day", 48: "two days", 72: "three days"},
    "s": {},
}
_HOURS = ["twelve", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"]
_WEEKS = {7: "in a week", 14: "in two weeks", 21: "in three weeks", -7: "a week ago", -14: "two weeks ago"}


@dataclass(frozen=True)
class Voice:
    """How each kind of value is said."""

    money: Callable[[float, str], Wordings]
    number: Callable[[float], Wordings]
    percent: Callable[[float, str], Wordings]
    quantity: Callable[[float, str], Wordings]
    duration: Callable[[float, str], Wordings]
    time: Callable[[datetime], Wordings]
    date: Callable[[date], Wordings]
    relative: Callable[[date, date], Wordings]


def _say_money(value: float, currency: str) -> Wordings:
    if currency in CURRENCIES:
        plain, symbol = wording.say_money(value, currency), CURRENCIES[currency][0]
    else:
        symbol, name = _MORE_CURRENCIES[currency]
        short = f"{value:,.2f}".removesuffix(".00")
        plain = Wordings((f"{symbol}{value:,.2f}", f"{value:.2f} {currency}", f"{currency} {short}", f"{short} {name}"))
    brief = f"{symbol}{value:,.2f}".removesuffix(".00")
    loose = [f"just {side} {symbol}{near:,.0f}" for side, near in _whole_near(value)]
    if value >= 1000:
        loose.append(f"around {symbol}{float(f'{value / 1000:.3g}'):,g}k")
    return Wordings((*plain.exact, brief), (*plain.loose, *loose))


def _whole_near(value: float) -> list[tuple[str, float]]:
    """The whole number close by, and on which side of it the value is."""
    rest = value - floor(value)
    if value < 20 or rest in (0, 0.5):
        return []
    return [("over", floor(value))] if rest < 0.5 else [("under", ceil(value))]


def _say_number(value: float) -> Wordings:
    plain = wording.say_number(value)
    loose = ["a dozen"] if value == 12 else []
    step = 1000 if value >= 20_000 else 100 if value >= 2000 else 10
    near = round(value / step) * step
    if value >= 100 and near != value:
        loose += [f"just {'over' if near < value else 'under'} {near:,}", f"some {near:,}"]
    return Wordings(plain.exact, (*plain.loose, *loose))


def _say_percent(value: float, sort: str) -> Wordings:
    plain = wording.say_percent(value)
    near = [f"about {name}" for share, name in _SHARES.items() if sort == "share" and abs(value - share) <= 1.5]
    return Wordings((*plain.exact, f"{plain.exact[0].removesuffix('%')} per cent"), (*plain.loose, *near))


def _say_quantity(value: float, unit: str) -> Wordings:
    if unit not in _MORE_UNITS:
        plain = wording.say_quantity(value, unit)
        return Wordings((*plain.exact, plain.exact[0].replace(f" {unit}", unit)), plain.loose)
    text = f"{value:,.0f}" if value == int(value) else f"{value:,.10g}"
    loose = (f"roughly {value:,.0f} {unit}",) if value > 20 and value != int(value) else ()
    return Wordings((f"{text} {unit}", f"{text} {_MORE_UNITS[unit]}", f"{text}{unit}"), loose)


def _say_duration(value: float, unit: str) -> Wordings:
    plain = wording.say_duration(value, unit)
    brief = plain.exact[0]
    if unit == "min":
        big, small = divmod(int(value), 60)
        brief = " ".join([f"{big}h"] * bool(big) + [f"{small}m" if big else f"{small} mins"] * bool(small))
    named = [_SPANS[unit][int(value)]] if int(value) == value and int(value) in _SPANS[unit] else []
    rest = int(value) % 60
    if unit == "min" and value > 60 and rest in (*range(1, 9), *range(52, 60)):
        hours = round(value / 60)
        named.append(f"just {'over' if rest < 9 else 'under'} {hours} hour{'s' * (hours > 1)}")
    loose = () if unit == "days" or (named and unit == "min") else plain.loose
    return Wordings((*plain.exact, brief), (*loose, *named))


def _say_time(value: datetime) -> Wordings:
    plain, hour = wording.say_time(value), value.hour % 12 or 12
    half = "am" if value.hour < 12 else "pm"
    exact = (*plain.exact, f"{hour}:{value:%M}{half}", f"{hour}.{value:%M}{half}")
    return Wordings(exact, (*plain.loose, *_name_hour(value), *_round_time(value)))


def _name_hour(value: datetime) -> list[str]:
    """A full, half or quarter hour in words."""
    part = "in the morning" if value.hour < 12 else "in the afternoon" if value.hour < 18 else "in the evening"
    if value.hour < 5 or value.hour > 21:
        return []
    if (value.hour, value.minute) == (12, 0):
        return ["noon"]
    now, then = _HOURS[value.hour % 12], _HOURS[(value.hour + 1) % 12]
    said = {0: f"{now} o'clock", 15: f"quarter past {now}", 30: f"half past {now}", 45: f"quarter to {then}"}
    return [f"{said[value.minute]} {part}"] if value.minute in said else []


def _round_time(value: datetime) -> list[str]:
    """The five minutes next to a time that has none."""
    rest = value.minute % 5
    near = value + timedelta(minutes=5 - rest if rest > 2 else -rest)
    return [f"around {wording.say_time(near).exact[1]}"] if rest else []


def _say_date(value: date) -> Wordings:
    plain = wording.say_date(value)
    ordinal = plain.loose[2].rpartition(" ")[2]
    exact = (*plain.exact, f"{value.day} {value:%b} {value.year}", f"{value:%a}, {value.day} {value:%b}")
    numeric = (f"{value:%d/%m/%Y}",) if value.day > 12 else ()
    return Wordings(exact, (*plain.loose, f"the {ordinal} of {value:%B}", *numeric))


def _say_relative(value: date, now: date) -> Wordings:
    plain, days = wording.say_relative(value, now), (value - now).days
    named = {2: ("the day after tomorrow",), -2: ("the day before yesterday",)}.get(days, ())
    if days in _WEEKS:
        named = (*named, _WEEKS[days])
    if 2 <= days <= 6 and value.isoweekday() > now.isoweekday():
        named = (*named, f"this {value:%A}")
    return Wordings(plain.exact, (*plain.loose, *named))


PLAIN = Voice(
    wording.say_money,
    wording.say_number,
    lambda value, _: wording.say_percent(value),
    wording.say_quantity,
    wording.say_duration,
    wording.say_time,
    wording.say_date,
    wording.say_relative,
)
FREE = Voice(_say_money, _say_number, _say_percent, _say_quantity, _say_duration, _say_time, _say_date, _say_relative)
VOICES = {"plain": PLAIN, "free": FREE}
