"""Units of measure and currencies: what a word after a number, or a part of a field's name, stands for."""

from __future__ import annotations

from typing import NamedTuple

from service.core.grounding.reading.languages import split_words


class Unit(NamedTuple):
    """A unit: `value * factor + shift` is the value in the base unit of its dimension. `currency`: an ISO 4217 code, or ""."""

    dimension: str
    factor: float
    shift: float = 0.0
    currency: str = ""


_TABLE = """
length 1 m meter metre meters metres mètre mètres metro metros
length .01 cm centimeter centimeters centimetre centimetres zentimeter centímetros centimètres
length .001 mm millimeter millimeters millimetre millimetres milímetros millimètres
length 1000 km kilometer kilometers kilometre kilometres kilómetro kilómetros kilomètre kilomètres
length .0254 in inch inches zoll pouces pulgadas ″
length .3048 ft foot feet fuß pieds pies
length .9144 yd yard yards
length 1609.344 mi mile miles meile meilen milla millas mille
length 1852 nmi nm
mass 1 g gram grams gramm gramo gramos gramme grammes
mass .001 mg milligram milligrams milligramm
mass .000001 µg ug mcg
mass 1000 kg kilo kilos kilogram kilograms kilogramm kilogramos kilogrammes
mass 1000000 t tonne tonnes tonnen toneladas
mass 28.349523125 oz ounce ounces
mass 453.59237 lb lbs pound_mass
area 1 m² sqm m2
area .09290304 sqft ft²
area 10000 ha hectare hectares hektar hectáreas
area 1000000 km²
volume 1 l L liter litre liters litres litro litros
volume .001 ml mL milliliter millilitre
volume 3.785411784 gal gallon gallons
volume 1000 m³ m3
speed 1 m/s mps
speed .2777777777777778 km/h kmh kph
speed .44704 mph
speed .5144444444444444 kn knots knoten nudos nœuds
pressure 100 hPa hpa mbar
pressure 1000 kPa kpa
pressure 100000 bar
data 1 B byte bytes
data 1000 KB kb kB kilobyte kilobytes
data 1000000 MB mb megabyte megabytes
data 1000000000 GB gb gigabyte gigabytes Go
data 1000000000000 TB tb terabyte terabytes
data 1024 KiB kib
data 1048576 MiB mib Mio
data 1073741824 GiB gib Gio
data 1099511627776 TiB tib
rate 1 bps bit/s
rate 1000 kbps kbit/s
rate 1000000 Mbps mbps Mbit/s mbit/s
rate 1000000000 Gbps gbps Gbit/s
rate 8000000 MB/s
frequency 1 Hz hz hertz
frequency 1000 kHz khz
frequency 1000000 MHz mhz
frequency 1000000000 GHz ghz
power 1 W watt watts
power 1000 kW kw kilowatt kilowatts
power 1000000 MW mw megawatt
energy 1 Wh wh
energy 1000 kWh kwh
energy 1000000 MWh mwh
energy 1.163 kcal calories kalorien calorías
energy .2777777777777778 kJ kj
potential 1 V volt volts
potential .001 mV
current 1 A ampere
current .001 mA
time .001 ms millisecond milliseconds millisekunden milisegundos millisecondes msec millis
time 1 s sec secs second seconds sekunde sekunden segundo segundos seconde secondes sek
time 60 min mins minute minutes minuten minuto minutos
time 3600 h hr hrs hour hours stunde stunden hora horas heure heures std
time 86400 d day days tag tage tagen día días jour jours
time 604800 week weeks woche wochen semana semanas semaine semaines wk
time 2629746 month months monat monate monaten mes meses mois
time 31556952 year years jahr jahre jahren año años an ans yr yrs
share .01 % percent pct percentage prozent
share .001 ‰ permille promille
share .0001 bp bps_ basis_points
angle 1 °
angle .016666666666666666 \u2032
"""
_CELSIUS = Unit("temperature", 1.0)
_FAHRENHEIT = Unit("temperature", 5 / 9, -160 / 9)


def _build_units() -> dict[str, Unit]:
    found: dict[str, Unit] = {}
    for line in _TABLE.strip().splitlines():
        dimension, factor, *names = line.split()
        found |= {name: Unit(dimension, float(factor)) for name in names}
    found |= dict.fromkeys(("°C", "°c", "℃", "celsius", "c"), _CELSIUS)
    found |= dict.fromkeys(("°F", "°f", "fahrenheit", "f"), _FAHRENHEIT)
    return found | {"kelvin": Unit("temperature", 1.0, -273.15)}


UNITS = _build_units()
"""Units by their spellings: symbols as they are, words in lower case."""

_CODES = """
AED ARS AUD BGN BHD BRL CAD CHF CLP CNY COP CZK DKK EGP EUR GBP HKD HUF IDR ILS INR IQD ISK JOD JPY KES KRW KWD LYD MAD
MXN MYR NGN NOK NZD OMR PEN PHP PKR PLN PYG QAR RON RSD RUB SAR SEK SGD THB TND TRY TWD UAH UGX USD UYU VND XAF XOF ZAR
"""
_NAMES = {
    "USD": "$ US$ dollar dollars bucks dólar dólares us-dollar",
    "EUR": "€ euro euros",
    "GBP": "£ pound pounds quid pfund libras livres",
    "JPY": "¥ yen",
    "INR": "₹ rupee rupees rupien rupias roupies",
    "CHF": "fr francs franken francos",
    "CAD": "CA$ C$",
    "AUD": "A$ AU$",
    "SEK": "kronor",
    "NOK": "kroner kr",
    "CZK": "koruna kč",
    "PLN": "zł zloty złoty",
    "KRW": "₩ won",
    "BRL": "R$ reais",
}
CURRENCIES = {code: code for code in _CODES.split()} | {
    name: code for code, names in _NAMES.items() for name in names.split()
}
"""ISO 4217 codes by sign, code and name."""
_DOLLARS = split_words("USD CAD AUD NZD SGD HKD TWD MXN ARS CLP COP")
_CROWNS = frozenset({"SEK", "NOK", "DKK", "ISK", "CZK"})
MINOR_WORDS = split_words(
    "cent cents centavo centavos centime centimes céntimo céntimos pence pennies penny rappen øre öre fils grosz "
    "groszy paise paisa"
)
"""Names of the smallest units of currencies."""
_MINOR_DIGITS = dict.fromkeys(["CLP", "ISK", "JPY", "KRW", "PYG", "UGX", "VND", "XAF", "XOF"], 0) | dict.fromkeys(
    ["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"], 3
)


def get_minor_factor(currency: str) -> float:
    """Return how many of a currency's smallest unit make a whole one (ISO 4217); 100 where the currency is unknown.

    >>> get_minor_factor("USD"), get_minor_factor("JPY"), get_minor_factor("KWD")
    (100.0, 1.0, 1000.0)
    """
    return 10.0 ** _MINOR_DIGITS.get(currency, 2)


def may_be_same_currency(one: str, other: str) -> bool:
    """Whether two codes may mean one currency: an unknown one may be any, and a bare `$` or `kr` leaves the country open.

    >>> may_be_same_currency("USD", "EUR"), may_be_same_currency("USD", "CAD"), may_be_same_currency("", "JPY")
    (False, True, True)
    """
    either = {one, other}
    return (
        one == other
        or "" in either
        or ("USD" in either and either <= _DOLLARS)
        or ("NOK" in either and either <= _CROWNS)
    )


def find_unit(word: str) -> Unit | None:
    """Return the unit or currency that a word or sign stands for, or None. Cents are money by a hundredth.

    >>> find_unit("km").factor, find_unit("Stunden").dimension, find_unit("€").currency, find_unit("widgets")
    (1000.0, 'time', 'EUR', None)
    """
    unit = UNITS.get(word) or (UNITS.get(word.lower()) if len(word) > 2 else None)
    if unit is not None:
        return unit
    code = CURRENCIES.get(word) or CURRENCIES.get(word.lower() if len(word) > 3 else word)
    if code is not None:
        return Unit("money", 1.0, 0.0, code)
    return Unit("money", 0.01) if word.lower() in MINOR_WORDS else None
