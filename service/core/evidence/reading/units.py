"""Units of measure and currencies, and their conversion."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import NamedTuple


class Unit(NamedTuple):
    """A unit of measure: `value * factor + shift` is the value in the base unit of its dimension."""

    name: str
    dimension: str
    factor: Decimal
    shift: Decimal = Decimal(0)


_TABLE = """
length: mm 0.001, cm 0.01, m 1, km 1000, in 0.0254, ft 0.3048, yd 0.9144, mi 1609.344
mass: mg 0.001, g 1, kg 1000, t 1000000, oz 28.349523125, lb 453.59237
temperature: °C 1
area: m² 1, sq_ft 0.09290304, ha 10000, acre 4046.8564224
volume: ml 0.001, l 1, m³ 1000
speed: m/s 1, km/h 0.2777777777777778, mph 0.44704, kn 0.5144444444444444
pressure: hPa 1, mbar 1, kPa 10, Pa 0.01
data: B 1, KB 1000, MB 1000000, GB 1000000000, TB 1000000000000
frequency: Hz 1, kHz 1000, MHz 1000000, GHz 1000000000
charge: mAh 1, Ah 1000
power: mW 0.001, W 1, kW 1000, MW 1000000
energy: Wh 1, kWh 1000, MWh 1000000, kcal 1.163, kJ 0.2777777777777778
potential: V 1
density: ppi 1
brightness: nits 1
pixels: MP 1
lines: px 1
rate: fps 1, Mbps 1000000, Gbps 1000000000
duration: ms 0.001, s 1, min 60, h 3600, day 86400, week 604800, month 2629746, year 31556952
"""
_WORDS = """
mm millimeter millimetre, cm centimeter centimetre, m meter metre, km kilometer kilometre, in inch inches ″, ft foot feet,
yd yard, mi mile, mg milligram, g gram, kg kilogram kilo, t tonne, oz ounce, lb lbs pound_mass, °C celsius,
ml milliliter millilitre, l liter litre,
m² sqm sq_m square_meter square_metre, sq_ft sqft ft² square_foot square_feet, ha hectare, acre acres, kcal calorie,
m/s mps meters_per_second metres_per_second, km/h kmh kph kilometers_per_hour kilometres_per_hour, mph miles_per_hour,
kn knot, hPa hectopascal, mbar millibar,
KB kilobyte, MB megabyte, GB gigabyte, TB terabyte, Hz hertz, kHz kilohertz, MHz megahertz, GHz gigahertz, W watt,
kW kilowatt, MW megawatt, kWh kilowatt-hour kilowatt_hour, MWh megawatt-hour megawatt_hour, m³ m3 cubic_meter cubic_metre,
V volt, nits nit, MP megapixel, px pixel, ms millisecond, s sec secs second, min mins minute, h hr hrs hour,
day days, week weeks, month months, year years
"""
FAHRENHEIT = Unit("°F", "temperature", Decimal(5) / 9, Decimal(-160) / 9)
KELVIN = Unit("K", "temperature", Decimal(1), Decimal("-273.15"))


def _build_units() -> dict[str, Unit]:
    celsius = Unit("°C", "temperature", Decimal(1))
    found = {"°F": FAHRENHEIT, "fahrenheit": FAHRENHEIT, "kelvin": KELVIN, "℃": celsius}
    for word in ("degree", "degrees", "Degrees"):
        found |= {f"{word} Celsius": celsius, f"{word} celsius": celsius, f"{word} C": celsius}
        found |= {f"{word} Fahrenheit": FAHRENHEIT, f"{word} fahrenheit": FAHRENHEIT, f"{word} F": FAHRENHEIT}
    for line in _TABLE.strip().splitlines():
        dimension, _, rest = line.partition(": ")
        for entry in rest.split(", "):
            name, factor = entry.replace("_", " ").rsplit(" ", 1)
            found[name] = Unit(name, dimension, Decimal(factor))
    for entry in " ".join(_WORDS.split()).split(", "):
        name, *words = (part.replace("_", " ") for part in entry.split(" "))
        for word in words:
            found[word] = found[f"{word}s"] = found[name]
    return found


UNITS = _build_units()
"""Units by every spelling used in text; short symbols are case-sensitive."""


def _list_lowered() -> dict[str, str]:
    lowered = Counter(name.lower() for name in UNITS)
    return {name.lower(): name for name in UNITS if len(name) > 1 and lowered[name.lower()] == 1} | {
        n: n for n in UNITS
    }


LOWERED = _list_lowered()
"""Units' spellings as written, and in lower case where unambiguous, as field names need them."""

_CODES = """
AED ARS AUD BGN BHD BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR IQD ISK JOD JPY KES KRW KWD LYD MAD
MXN MYR NGN NOK NZD OMR PEN PHP PKR PLN PYG QAR RON RSD RUB SAR SEK SGD THB TND TRY TWD UAH UGX USD UYI VND XAF XOF XPF ZAR
"""
_SIGNS = {
    "$": "USD",
    "US$": "USD",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "₹": "INR",
    "CA$": "CAD",
    "C$": "CAD",
    "A$": "AUD",
}
CURRENCIES = _SIGNS | {code: code for code in _CODES.split()}
"""Currency codes by sign and code. A bare `$` reads as USD, and matches every dollar, since it leaves the country open."""

_NAMED = (
    "us dollars USD, canadian dollars CAD, australian dollars AUD, swiss francs CHF, pounds sterling GBP, "
    "dollar USD, dollars USD, bucks USD, euro EUR, euros EUR, pound GBP, pounds GBP, yen JPY, rupees INR, francs CHF"
)
CURRENCY_WORDS = {words: code for words, _, code in (pair.rpartition(" ") for pair in _NAMED.split(", "))}
"""Currency codes by the words people use, phrases first."""
_DOLLARS = frozenset({"USD", "CAD", "AUD", "NZD", "SGD", "HKD", "TWD", "MXN"})
MINOR_WORDS = frozenset(
    [
        "agorot",
        "cent",
        "centavo",
        "centavos",
        "centime",
        "centimes",
        "cents",
        "fils",
        "grosz",
        "groszy",
        "kopecks",
        "paisa",
        "paise",
        "pence",
        "pennies",
        "penny",
        "rappen",
        "øre",
        "öre",
    ]
)
"""Names of the smallest units of currencies."""
MINOR_DIGITS = dict.fromkeys(
    ["CLP", "ISK", "JPY", "KRW", "PYG", "UGX", "UYI", "VND", "XAF", "XOF", "XPF"], 0
) | dict.fromkeys(["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"], 3)
"""Decimal digits of a currency's smallest unit (ISO 4217), for currencies where this is not two."""


def is_same_currency(one: str, other: str) -> bool:
    """Whether two codes can mean the same currency: `?` matches any, and USD, the reading of a bare `$`, any dollar.

    >>> is_same_currency("USD", "EUR"), is_same_currency("USD", "CAD"), is_same_currency("?", "JPY")
    (False, True, True)
    """
    return one == other or "?" in (one, other) or ("USD" in (one, other) and {one, other} <= _DOLLARS)


def find_unit(text: str) -> Unit | None:
    """Return the unit that a word or symbol stands for; None if there is none.

    >>> find_unit("GB").dimension, find_unit("Inches").name, find_unit("gb"), find_unit("widgets")
    ('data', 'in', None, None)
    """
    return UNITS.get(text) or (UNITS.get(text.lower()) if len(text) > 3 else None)


def convert_to_base(value: Decimal, unit: Unit) -> Decimal:
    """Return the value in the base unit of its dimension.

    >>> str(convert_to_base(Decimal(2), UNITS["km"])), str(round(convert_to_base(Decimal(50), UNITS["°F"]), 6))
    ('2000', '10.000000')
    """
    return value * unit.factor + unit.shift
