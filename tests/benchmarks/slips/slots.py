"""The slots of an answer: which phrase says which fact of the payload, and what would be wrong there.

A template is text with slots, `{kind arguments}`, and choices of words, `[costs|comes to]`. A path leads into the result; a
single letter is a record of the scene's list, so `{money b.price}` is the price of the second one. Kinds:

    money p, int p, pct p, qty:km p, dur:min p      a number as such; p ending in _cents or _ratio is scaled
    sum, diff, max, min                             with the kind of number: {sum money items.*.price}, {diff money a.p b.p}
    count p [field=value]                           how many records
    most f name, least f name                       which record of the list has the largest or least f
    winner p q,r                                    the value at p; wrong are those at q and r
    name p, word p, id p                            a text; a category, said in the domain's `words`; an identifier
    bool p yes/no, neg p is/is not                  by a boolean
    time p, date p, weekday p, relative p           by a date, the last by the clock of the domain
    pair p q from A to B~to B from A                two places in their order
    alt class right~right too|wrong|wrong           by hand
    case class; formula; value=right~right; value=wrong     the wording whose value the formula has, the others being wrong
    calc class kind formula; formula                a number by a formula, and others one could mistake for it
    local:Zone p, localday:Zone p                   a time or date in a zone
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from tests.benchmarks.slips.formulas import compute, read_moment
from tests.benchmarks.slips.voices import VOICES, Voice
from tests.benchmarks.slips.wording import CURRENCIES, Wordings, say_number

_TEMPLATE = re.compile(r"\{([^{}]+)\}|\[([^\[\]{}]*\|[^\[\]{}]*)\]")
_HUNDREDTHS = "_cents", "_pence", "_rappen"
_NUMBERS = ("money", "int", "num", "pct", "qty", "dur")
_SWAPPABLE = {*_NUMBERS, "time", "date", "weekday", "name", "word", "id"}


@dataclass(frozen=True)
class Slot:
    """A phrase: how it may be said, and what would be wrong, by class of slip."""

    right: Wordings
    wrong: tuple[tuple[str, Wordings], ...] = ()
    source: str = ""
    """The template's words for it; none for a choice of words."""
    entity: tuple[str, str] | None = None
    """The record, and kind and field, where values of two records may be swapped."""


@dataclass(frozen=True)
class Scene:
    """A question, a call, its result, and what the domain knows of words and places."""

    domain: dict[str, Any]
    data: dict[str, Any]
    name: str = ""
    records: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "records", self.look(self.data["list"]) if "list" in self.data else [])

    def look(self, path: str) -> Any:
        """The value at a path; with `*`, the values."""
        head, *rest = path.split(".")
        value = self.data["result"]
        if len(head) == 1:
            value = self.records[ord(head) - ord("a")]
        else:
            rest = [head, *rest]
        return _walk(value, rest)

    def number(self, path: str) -> Any:
        """The number or numbers at a path, in the unit they are said in."""
        scale = 0.01 if path.endswith(_HUNDREDTHS) else 100 if path.endswith("_ratio") else 1
        value = self.look(path)
        return [round(each * scale, 4) for each in value] if isinstance(value, list) else round(float(value) * scale, 4)

    def compute(self, formula: str) -> Any:
        """The value of a formula on the result."""
        return compute(formula, self.data["result"], self.records, now=self.now)

    def say_name(self, value: Any) -> Wordings:
        """A text as it is, and its short names as the domain has them."""
        return Wordings((str(value),), tuple(self.domain.get("aliases", {}).get(value, ())))

    def others(self, path: str) -> list[Any]:
        """Values of the same field in other records, that differ."""
        head, _, rest = path.partition(".")
        if len(head) > 1 or not rest:
            return []
        values = [_walk(record, rest.split(".")) for record in self.records]
        return [value for value in dict.fromkeys(values) if value != self.look(path)]

    @property
    def voice(self) -> Voice:
        """Who speaks in this domain."""
        return VOICES[self.domain.get("voice", "plain")]

    @property
    def now(self) -> date:
        """The day of the clock in the system prompt."""
        return datetime.fromisoformat(self.domain["now"]).date()

    def say(self, kind: str) -> Callable[[float], Wordings]:
        """How numbers of a kind are said here."""
        name, _, unit = kind.replace("_", " ").partition(":")
        return {
            "money": lambda v: self.voice.money(v, self.domain["currency"]),
            "int": self.voice.number,
            "num": _say_digits,
            "pct": lambda v: self.voice.percent(v, unit),
            "qty": lambda v: self.voice.quantity(v, unit),
            "dur": lambda v: self.voice.duration(v, unit),
        }[name]


def _say_digits(value: float) -> Wordings:
    return Wordings(tuple(said for said in say_number(value).exact if not said.isalpha()))


def parse(template: str, scene: Scene) -> list[str | Slot]:
    """Plain text and slots, in order."""
    pieces: list[str | Slot] = []
    end = 0
    for match in _TEMPLATE.finditer(template):
        pieces.append(template[end : match.start()])
        pieces.append(_slot(match[1], scene) if match[1] else Slot(Wordings(tuple(match[2].split("|")))))
        end = match.end()
    return [*pieces, template[end:]]


def _slot(source: str, scene: Scene) -> Slot:
    kind, _, rest = source.partition(" ")
    name = kind.partition(":")[0]
    if name in _NUMBERS:
        right, wrong = _number(scene, kind, rest)
    elif name in ("local", "localday"):
        right, wrong = _local(scene, kind, rest)
    else:
        right, wrong = _KINDS[name](scene, rest)
    head, _, rest = rest.partition(" ")[0].partition(".")
    entity = (head, f"{kind} {rest}") if len(head) == 1 and rest and name in _SWAPPABLE else None
    kept = [(slip, wording) for slip, wording in wrong if wording.exact[0] != right.exact[0]]
    return Slot(right, tuple(kept), source, entity)


_SLIP_OF = {
    "money": "amount",
    "int": "amount",
    "num": "amount",
    "pct": "percentage",
    "qty": "amount",
    "dur": "duration",
}
Said = tuple[Wordings, list[tuple[str, Wordings]]]


def _number(scene: Scene, kind: str, path: str) -> Said:
    say, value = scene.say(kind), scene.number(path)
    name, _, unit = kind.replace("_", " ").partition(":")
    wrong = [(_SLIP_OF[name], say(each)) for each in _flips(value)]
    if name == "money":
        own = scene.domain["currency"]
        wrong += [("currency", scene.voice.money(value, other)) for other in CURRENCIES if other != own]
        wrong += [("currency", say(round(value * scale, 2))) for scale in (100, 10, 0.01)]
    if name == "qty":
        wrong += [("unit", scene.voice.quantity(value, _other_unit(unit)))]
    return say(value), wrong


def _other_unit(unit: str) -> str:
    """The unit that one slips into."""
    pairs = ("km", "mi"), ("m", "ft"), ("kg", "lb"), ("cm", "in"), ("km/h", "mph"), ("m²", "sq ft"), ("°C", "°F")
    pairs += ("kWh", "MWh"), ("kW", "MW"), ("GB", "MB"), ("ms", "s"), ("l", "m³")
    return next((a if unit == b else b) for a, b in pairs if unit in (a, b))


def _flips(value: float) -> Iterator[float]:
    """The number with one digit changed, for each of its digits from the last, leading zeros left out."""
    text = f"{value:.0f}" if value == int(value) else f"{value:.2f}" if round(value, 1) != value else f"{value:.1f}"
    for n in reversed(range(len(text))):
        if text[n].isdigit():
            for step in (4, 1):
                digit = (int(text[n]) + step) % 10
                if digit or text[:n].strip("-0"):
                    yield float(f"{text[:n]}{digit}{text[n + 1 :]}")


def _sum(scene: Scene, rest: str) -> Said:
    kind, paths = rest.split()
    parts = [part for path in paths.split(",") for part in _listed(scene.number(path))]
    total, say = round(sum(parts), 2), scene.say(kind)
    wrong = [*_flips(total), *(round(total - part, 2) for part in parts)]
    return say(total), [("sum", say(each)) for each in wrong if each > 0 and each != total]


def _diff(scene: Scene, rest: str) -> Said:
    kind, one, other = rest.split()
    a, b = scene.number(one), scene.number(other)
    value, say = round(abs(a - b), 2), scene.say(kind)
    return say(value), [("difference", say(each)) for each in (*_flips(value), a) if each != value]


def _extreme(slip: str, best: Callable[[list[float]], float]) -> Callable[[Scene, str], Said]:
    def build(scene: Scene, rest: str) -> Said:
        kind, path = rest.split()
        values, say = scene.number(path), scene.say(kind)
        return say(best(values)), [(slip, say(each)) for each in dict.fromkeys(values) if each != best(values)]

    return build


def _which(best: Callable[[list[float]], float]) -> Callable[[Scene, str], Said]:
    def build(scene: Scene, rest: str) -> Said:
        by, name = rest.split()
        values = [_walk(record, by.split(".")) for record in scene.records]
        names = [str(_walk(record, name.split("."))) for record in scene.records]
        right = names[values.index(best(values))]
        others = [each for each, value in zip(names, values, strict=True) if value != best(values) and each != right]
        return scene.say_name(right), [("which", Wordings((each,))) for each in others]

    return build


def _count(scene: Scene, rest: str) -> Said:
    path, *where = rest.split()
    records = scene.look(path)
    for condition in where:
        key, value = condition.split("=")
        records = [record for record in records if str(record[key]).lower() == value]
    n = len(records)
    return say_number(n), [("count", say_number(each)) for each in (n + 1, n - 1, n + 2) if each > 1]


def _winner(scene: Scene, rest: str) -> Said:
    path, *paths = rest.replace(",", " ").split()
    right = scene.look(path)
    wrong = [name for each in paths for name in _listed(scene.look(each)) if name != right]
    return scene.say_name(right), [("winner", Wordings((name,))) for name in dict.fromkeys(wrong)]


def _name(scene: Scene, path: str) -> Said:
    value = scene.look(path)
    pool = scene.others(path) or scene.domain["words"][path.rsplit(".", maxsplit=1)[-1]]
    return scene.say_name(value), [("name", Wordings((each,))) for each in pool if each != value]


def _word(scene: Scene, path: str) -> Said:
    words = scene.domain["words"][path.rsplit(".", maxsplit=1)[-1]]
    value = scene.look(path)
    exact, *loose = words[value]
    return Wordings((exact,), tuple(loose)), [
        ("status", Wordings((said[0],))) for key, said in words.items() if key != value
    ]


def _id(scene: Scene, path: str) -> Said:
    value = str(scene.look(path))
    places = [n for n, char in enumerate(value) if char.isdigit()]
    wrong = [f"{value[:n]}{(int(value[n]) + step) % 10}{value[n + 1 :]}" for n in reversed(places) for step in (3, 1)]
    return Wordings((value,)), [("id", Wordings((each,))) for each in wrong if each not in scene.others(path)]


def _boolean(slip: str) -> Callable[[Scene, str], Said]:
    def build(scene: Scene, rest: str) -> Said:
        path, words = rest.split(" ", 1)
        yes, no = (_ways(each) for each in words.split("/"))
        return (yes, [(slip, no)]) if scene.look(path) else (no, [(slip, yes)])

    return build


def _time(scene: Scene, path: str) -> Said:
    return _say_clock(scene, read_moment(scene.look(path)))


def _say_clock(scene: Scene, value: datetime) -> Said:
    steps = [("time", minutes) for minutes in (15, -30, 60, -20, 130)] + [("ampm", 720)]
    say = scene.voice.time
    return say(value), [(slip, say(value + timedelta(minutes=minutes))) for slip, minutes in steps]


def _date(scene: Scene, path: str) -> Said:
    return _say_day(scene, date.fromisoformat(scene.look(path)[:10]))


def _say_day(scene: Scene, value: date) -> Said:
    say = scene.voice.date
    return say(value), [("date", say(value + timedelta(days=days))) for days in (1, -2, 7, 31, -1)]


def _local(scene: Scene, kind: str, path: str) -> Said:
    name, _, zone = kind.partition(":")
    value = read_moment(scene.look(path), zone)
    if name == "localday":
        return _say_day(scene, value.date())
    right, wrong = _say_clock(scene, value)
    there = scene.voice.time(read_moment(scene.look(path)))
    return right, [*wrong, *([("time", there)] if there.exact[0] != right.exact[0] else [])]


def _weekday(scene: Scene, path: str) -> Said:
    value = date.fromisoformat(scene.look(path)[:10])
    wrong = [f"{value + timedelta(days=days):%A}" for days in (1, -1, 2, 4)]
    return Wordings((f"{value:%A}",), (f"{value:%a}",)), [("weekday", Wordings((each,))) for each in wrong]


def _relative(scene: Scene, path: str) -> Said:
    value, say = date.fromisoformat(scene.look(path)[:10]), scene.voice.relative
    wrong = [say(value + timedelta(days=days), scene.now) for days in (1, -1, 2)]
    return say(value, scene.now), [("relative", each) for each in wrong]


def _pair(scene: Scene, rest: str) -> Said:
    one, other, text = rest.split(" ", 2)
    names = {"A": scene.look(one), "B": scene.look(other)}
    swapped = {"A": names["B"], "B": names["A"]}

    def fill(names: dict[str, str]) -> Wordings:
        return Wordings(tuple(re.sub(r"\b[AB]\b", lambda match: names[match[0]], way) for way in text.split("~")))

    return fill(names), [("place", fill(swapped))]


def _alt(scene: Scene, rest: str) -> Said:
    slip, words = rest.split(" ", 1)
    right, *wrong = words.split("|")
    return _ways(right), [(slip, _ways(each)) for each in wrong]


def _case(scene: Scene, rest: str) -> Said:
    slip, formula, *options = (each.strip() for each in rest.split(";"))
    said = {key.strip(): _ways(words) for key, _, words in (option.partition("=") for option in options)}
    value = str(scene.compute(formula))
    if value not in said:
        raise KeyError(f"{scene.name}: no wording for {value}, which is {formula}")
    return said[value], [(slip, ways) for key, ways in said.items() if key != value]


def _calc(scene: Scene, rest: str) -> Said:
    slip, kind, formulas = rest.split(" ", 2)
    value, *others = (round(float(scene.compute(each.strip())), 2) for each in formulas.split(";"))
    say = scene.say(kind)
    return say(value), [(slip, say(each)) for each in (*_flips(value), *others) if each != value]


_KINDS: dict[str, Callable[[Scene, str], Said]] = {
    "sum": _sum,
    "diff": _diff,
    "max": _extreme("max", max),
    "min": _extreme("min", min),
    "most": _which(max),
    "least": _which(min),
    "count": _count,
    "winner": _winner,
    "name": _name,
    "word": _word,
    "id": _id,
    "bool": _boolean("boolean"),
    "neg": _boolean("negation"),
    "time": _time,
    "date": _date,
    "weekday": _weekday,
    "relative": _relative,
    "pair": _pair,
    "alt": _alt,
    "case": _case,
    "calc": _calc,
}


def _walk(value: Any, path: list[str]) -> Any:
    for n, key in enumerate(path):
        if key == "*":
            return [_walk(each, path[n + 1 :]) for each in value]
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def _ways(text: str) -> Wordings:
    exact, *loose = (each.strip() for each in text.split("~"))
    return Wordings((exact,), tuple(loose))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
