"""Names of numbers, months, weekdays and the like in English, German, Spanish and French, as data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache


def split_words(words: str) -> frozenset[str]:
    """Return the words of a text as a set, so that word lists can be written as text."""
    return frozenset(words.split())


LANGUAGES = ("en", "de", "es", "fr")

_COMMON = {
    "en": "the is are of and to it was for on with at you your has have from this that by in an i",
    "de": "der die das ist sind und zu es war für auf mit am sie ihr ihre hat haben von dem den im ein eine ich nicht um uhr",
    "es": "el la los las es son y de del fue para con su se ha han por en un una que al hay",
    "fr": "le la les est sont et de du des pour avec vous votre a ont par en un une que au aux il elle sur",
}
_COMMON_WORDS = {language: frozenset(words.split()) for language, words in _COMMON.items()}
_WORD = re.compile(r"[^\W\d_]+")


def guess_language(text: str) -> str:
    """Guess the language of a text by its commonest words; English where nothing tells.

    >>> guess_language("Der Zug ist um 8 Uhr da."), guess_language("La cita es el lunes"), guess_language("42")
    ('de', 'es', 'en')
    """
    words = _WORD.findall(text[:4_000].lower())
    counts = {language: sum(map(common.__contains__, words)) for language, common in _COMMON_WORDS.items()}
    return max(LANGUAGES, key=counts.__getitem__)


_MONTHS = """
january february march april may june july august september october november december
januar februar märz april mai juni juli august september oktober november dezember
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
janvier février mars avril mai juin juillet août septembre octobre novembre décembre
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
jan feb mar apr may jun jul aug sep oct nov dec
jän feb mrz apr mai jun jul aug sept okt nov dez
ene feb mar abr may jun jul ago set oct nov dic
janv févr mars avr mai juin juil août sept oct nov déc
"""
MONTHS = {name: n for line in _MONTHS.split("\n") for n, name in enumerate(line.split(), 1)}
"""Names and short forms of months."""

_WEEKDAYS = """
monday tuesday wednesday thursday friday saturday sunday
mon tue wed thu fri sat sun
montag dienstag mittwoch donnerstag freitag samstag sonntag
montags dienstags mittwochs donnerstags freitags samstags sonntags
lunes martes miércoles jueves viernes sábado domingo
lundi mardi mercredi jeudi vendredi samedi dimanche
"""
WEEKDAYS = {name: n for line in _WEEKDAYS.split("\n") for n, name in enumerate(line.split())} | {
    "sonnabend": 5,
    "tues": 1,
    "thur": 3,
    "thurs": 3,
}
"""Names of weekdays; Monday is 0."""

RELATIVE_DAYS = {
    "en": {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1},
    "de": {"heute": 0, "morgen": 1, "gestern": -1, "übermorgen": 2, "vorgestern": -2},
    "es": {"hoy": 0, "mañana": 1, "ayer": -1},
    "fr": {"aujourd'hui": 0, "demain": 1, "hier": -1, "après-demain": 2, "avant-hier": -2},
}
"""Words for days that count from a stated today."""

NAMED_TIMES = dict.fromkeys(split_words("midnight mitternacht medianoche minuit"), 0) | dict.fromkeys(
    split_words("noon midday mittags mediodía midi"), 43_200
)
"""Times of day that have a name, in seconds."""

_SMALL = {
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit "
    "dix-neuf",
}
_TENS = {
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "es": "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
    "fr": "vingt trente quarante cinquante soixante soixante-dix quatre-vingt quatre-vingt-dix",
}
MULTIPLIERS = {
    "en": {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "dozen": 12, "lakh": 10**5, "crore": 10**7},
    "de": {"hundert": 100, "tausend": 1000, "million": 10**6, "millionen": 10**6, "milliarde": 10**9, "milliarden": 10**9,
           "dutzend": 12},
    "es": {"cien": 100, "ciento": 100, "mil": 1000, "millón": 10**6, "millones": 10**6, "docena": 12, "docenas": 12},
    "fr": {"cent": 100, "cents": 100, "mille": 1000, "million": 10**6, "millions": 10**6, "milliard": 10**9,
           "milliards": 10**9, "douzaine": 12, "douzaines": 12},
}  # fmt: skip
"""Number words that multiply what stands before them."""
ARTICLES = split_words("one ein eine einen einem einer un una uno une eins")
"""Words for one that are mostly articles: a value only before a multiplier or a unit."""

SCALES = {
    "k": 1_000, "tsd": 1_000, "m": 10**6, "mn": 10**6, "mio": 10**6, "mrd": 10**9, "bn": 10**9, "b": 10**9,
    "thousands": 1_000, "billions": 10**9,
    "thousand": 1_000, "million": 10**6, "millions": 10**6, "billion": 10**9, "trillion": 10**12, "lakh": 10**5,
    "crore": 10**7, "tausend": 1_000, "millionen": 10**6, "milliarde": 10**9, "milliarden": 10**9, "mil": 1_000,
    "millón": 10**6, "millones": 10**6, "mille": 1_000, "milliard": 10**9, "milliards": 10**9, "dozen": 12, "hundred": 100,
}  # fmt: skip
"""What multiplies digits that stand before it."""

HALVES = {
    "half": 0.5, "a half": 0.5, "halb": 0.5, "halbe": 0.5, "halbes": 0.5, "hälfte": 0.5, "media": 0.5, "mitad": 0.5, "demi": 0.5,
    "moitié": 0.5, "quarter": 0.25, "quarters": 0.25, "viertel": 0.25, "cuarto": 0.25, "cuartos": 0.25, "quart": 0.25,
    "quarts": 0.25, "third": 1 / 3, "thirds": 1 / 3, "drittel": 1 / 3, "tercio": 1 / 3, "tercios": 1 / 3, "tiers": 1 / 3,
    "fifth": 0.2, "fifths": 0.2, "fünftel": 0.2, "quinto": 0.2, "quintos": 0.2, "cinquième": 0.2, "cinquièmes": 0.2,
    "sixth": 1 / 6, "sixths": 1 / 6, "sechstel": 1 / 6, "eighth": 0.125, "eighths": 0.125, "achtel": 0.125, "octavo": 0.125,
    "octavos": 0.125, "huitième": 0.125, "huitièmes": 0.125, "tenth": 0.1, "tenths": 0.1, "zehntel": 0.1, "dixième": 0.1,
    "dixièmes": 0.1,
}  # fmt: skip
"""Parts of a whole."""

HEDGES = split_words(
    "about good around roughly approximately approx nearly almost just some over under above below more less than least "
    "most up circa ca etwa ungefähr rund fast knapp gut über unter mehr weniger als mindestens höchstens bis casi "
    "unos unas alrededor aproximadamente más menos cerca environ presque près plus moins quelque autour ~ ≈ > < ≥ ≤"
)
"""Words and signs before a number that is told roughly, or as a bound."""


def _spell_small(language: str) -> Iterator[tuple[str, int]]:
    ones, tens = _SMALL[language].split(), _TENS[language].split()
    yield from zip(ones, range(20), strict=True)
    for n, ten in enumerate(tens, 2):
        yield ten, 10 * n
        for one in range(1, 20 if language == "fr" and n in (6, 8) else 10):
            value, word = 10 * n + one, ones[one]
            if language == "de":
                yield f"{'ein' if one == 1 else word}und{ten}", value
            elif language == "es":
                yield f"{ten} y {word}", value
            elif language == "fr":
                yield from ((f"{ten}-{word}", value), (f"{ten} {word}", value), (f"{ten} et {word}", value))
            else:
                yield from ((f"{ten}-{word}", value), (f"{ten} {word}", value), (f"{ten}{word}", value))
    if language == "es":
        accented = {2: "veintidós", 3: "veintitrés", 6: "veintiséis"}
        yield from ((accented.get(n, f"veinti{ones[n]}"), 20 + n) for n in range(1, 10))
        hundreds = "doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos novecientos"
        yield from ((word, 100 * n) for n, word in enumerate(hundreds.split(), 2))


@lru_cache(maxsize=4)
def list_number_words(language: str) -> dict[str, int]:
    """Return the words of a language for the numbers below a hundred; German ones up to 999, as one word.

    >>> list_number_words("de")["zweihundertfünf"], list_number_words("fr")["quatre-vingt-dix-sept"]
    (205, 97)
    """
    words = dict(_spell_small(language))
    if language == "fr":
        words["quatre-vingts"] = 80
    if language == "de":
        small = [*words.items(), ("ein", 1)]
        for prefix, times in [("", 1), *[(word, n) for word, n in small if n < 10]]:
            words |= {f"{prefix}hundert{word}": 100 * times + n for word, n in [("", 0), *small]}
        words |= {f"{word}tausend": 1000 * n for word, n in small if 0 < n < 100}
        words |= {"zwo": 2, "dreissig": 30}
    return words
