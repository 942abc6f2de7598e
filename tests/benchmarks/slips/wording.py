"""How a value is said: in exact wordings, and in loose ones that round or convert it.

The n-th exact wording of two values of one kind has the same style, so a wrong value can be said as the right one was.

>>> say_money(1250.5, "EUR").exact
('€1,250.50', '1250.50 EUR', 'EUR 1,250.50', '1,250.50 euros')
>>> say_quantity(12, "km").loose
('about 7.5 miles',)
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

CURRENCIES = {"EUR": ("€", "euros"), "USD": ("$", "US dollars"), "GBP": ("£", "pounds")}
_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_UNITS = {  # name in full, the other unit, factor, offset
    "km": ("kilometres", "mi", 0.621371, 0),
    "mi": ("miles", "km", 1.609344, 0),
    "m": ("metres", "ft", 3.28084, 0),
    "ft": ("feet", "m", 0.3048, 0),
    "kg": ("kilograms", "lb", 2.204623, 0),
    "lb": ("pounds", "kg", 0.453592, 0),
    "cm": ("centimetres", "in", 0.393701, 0),
    "in": ("inches", "cm", 2.54, 0),
    "km/h": ("kilometres per hour", "mph", 0.621371, 0),
    "mph": ("miles per hour", "km/h", 1.609344, 0),
    "m²": ("square metres", "sq ft", 10.7639, 0),
    "sq ft": ("square feet", "m²", 0.092903, 0),
    "°C": ("degrees Celsius", "°F", 1.8, 32),
    "°F": ("degrees Fahrenheit", "°C", 1 / 1.8, -32 / 1.8),
}


@dataclass(frozen=True)
class Wordings:
    """All ways to say one value; `loose` is as true, and of another form or precision."""

    exact: tuple[str, ...]
    loose: tuple[str, ...] = ()

    def at(self, style: int) -> str:
        """The wording of this style, counted through exact and loose; the last exact one where there are fewer."""
        both = self.exact + self.loose
        return both[style] if style < len(both) else self.exact[-1]


def say_number(value: float) -> Wordings:
    """A bare number: 48,213 or 48213, in words up to twelve."""
    exact = [_group(value), _plain(value)]
    if _is_small(value):
        exact.append(_WORDS[int(value)])
    rounded = _group(_round(value))
    return Wordings(tuple(dict.fromkeys(exact)), (f"about {rounded}",) if abs(value) >= 100 else ())


def say_money(value: float, currency: str) -> Wordings:
    """An amount with symbol, code or name of its currency."""
    symbol, name = CURRENCIES[currency]
    cents = f"{value:,.2f}"
    short = cents.removesuffix(".00")
    rounded = f"{_round(value):,.2f}".removesuffix(".00")
    exact = f"{symbol}{cents}", f"{value:.2f} {currency}", f"{currency} {cents}", f"{short} {name}"
    return Wordings(exact, (f"about {symbol}{rounded}", f"roughly {rounded} {name}"))


def say_percent(value: float) -> Wordings:
    """A percentage, of which loose wordings have no decimals."""
    text, whole = _plain(value), f"{value:.0f}"
    return Wordings((f"{text}%", f"{text} %", f"{text} percent"), (f"about {whole}%", f"around {whole} per cent"))


def say_quantity(value: float, unit: str) -> Wordings:
    """A measure; the loose wording converts it."""
    name, other, factor, offset = _UNITS[unit]
    there = value * factor + offset
    rounded = _plain(round(there) if abs(there) >= 20 or offset else round(there, 1))
    said = _UNITS[other][0] if other in ("mi", "lb", "ft", "in", "kg") else other
    return Wordings((f"{_group(value)} {unit}", f"{_group(value)} {name}"), (f"about {rounded} {said}",))


def say_duration(value: float, unit: str) -> Wordings:
    """A time span given in `min`, `s`, `h` or `days`."""
    if unit in ("days", "h"):
        name = {"days": "days", "h": "hours"}[unit]
        exact = (f"{_plain(value)} {name}", f"{_word(value)} {name}")
        return Wordings(
            exact, (f"{_group(value * 24)} hours",) if unit == "days" else (f"{_group(value * 60)} minutes",)
        )
    big, small = divmod(int(value), 60)
    names = {"min": ("h", "min", "hours", "minutes"), "s": ("min", "s", "minutes", "seconds")}[unit]
    long = [f"{n} {name[:-1] if n == 1 else name}" for n, name in ((big, names[2]), (small, names[3])) if n]
    short = [f"{n} {name}" for n, name in ((big, names[0]), (small, names[1])) if n]
    loose = (f"about {_plain(round(value / 60, 1))} {names[2]}",) if big > 1 else ()
    return Wordings((" ".join(short), " and ".join(long), f"{int(value)} {names[3]}"), loose)


def say_time(value: datetime) -> Wordings:
    """A time of day: by 24 hours first, then by 12."""
    hour, half = value.hour % 12 or 12, "am" if value.hour < 12 else "pm"
    clock = f"{hour}:{value:%M}"
    short = f"{hour} {half}" if not value.minute else f"{clock} {half.upper()}"
    return Wordings((f"{value:%H:%M}", f"{clock} {half}", short, f"{clock} {half[0]}.m."))


def say_date(value: date) -> Wordings:
    """A date, with and without year and weekday."""
    day, month = value.day, f"{value:%B}"
    return Wordings(
        (f"{day} {month} {value.year}", f"{value:%Y-%m-%d}", f"{month} {day}, {value.year}", f"{month} {day}"),
        (f"{value:%A}, {day} {month}", f"{value:%b} {day}", f"{month} {_ordinal(day)}", f"{day} {month}"),
    )


def say_relative(value: date, now: date) -> Wordings:
    """A date by its distance from the day of the clock, as an adverb."""
    days = (value - now).days
    on = f"on {value.day} {value:%B}", f"on {value:%A}, {value:%B} {value.day}"
    near = {0: "today", 1: "tomorrow", -1: "yesterday"}.get(days)
    if near:
        return Wordings((near,), on)
    n, name = (str(abs(days)), _word(abs(days)))
    exact = (f"in {name} days", f"in {n} days") if days > 0 else (f"{name} days ago", f"{n} days ago")
    return Wordings(exact, on)


def _group(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{round(value, 2):,}"


def _plain(value: float) -> str:
    return _group(value).replace(",", "")


def _is_small(value: float) -> bool:
    return value == int(value) and 0 <= value < len(_WORDS)


def _word(value: float) -> str:
    return _WORDS[int(value)] if _is_small(value) else _plain(value)


def _ordinal(n: int) -> str:
    return f"{n}{'th' if n in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"


def _round(value: float) -> float:
    """The roundest number within 1.5 per cent."""
    for step in (100_000, 10_000, 1000, 100, 50, 10, 5, 1, 0.5, 0.1):
        near = round(value / step) * step
        if abs(near - value) <= 0.015 * abs(value):
            return round(near, 2)
    return value
