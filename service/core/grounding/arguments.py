"""Say of every argument of a call where it comes from: the same origins as those of values in texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from pydantic import JsonValue

from service.core.grounding.derive import Deriver
from service.core.grounding.facts import Fact, split_plain
from service.core.grounding.fields import (
    MONEY_WORDS,
    Beside,
    read_beside,
    read_field,
    says_minor,
    split_name,
    tells_minor,
)
from service.core.grounding.history import LEADING_ZEROS, STRONG, History, SpokenText
from service.core.grounding.origins import Grounded, Origin
from service.core.grounding.reading.languages import list_words
from service.core.grounding.reading.mentions import Reading, list_digits, normalize_code
from service.core.grounding.reading.moments import read_iso_day
from service.core.grounding.reading.units import Unit, get_minor_factor
from service.core.grounding.reading.values import find_values
from service.core.grounding.steps import Derivation, build_scene, find_derivation
from service.core.json.values import equals, format_value
from service.core.json.walk import Leaf, list_leaves
from service.core.results.structure import has_media
from service.core.trace import Step, ToolDef
from service.core.work_limits import Meter

MAX_ARGUMENTS = 500
"""How many leaves of one call are located."""
MAX_WORDS = 12
"""A longer text is free text: the model wrote it."""

NOWHERE = "identifier_from_nowhere"
MAGNITUDE = "order_of_magnitude"
SUSPECTED = "suspected_argument"
PROVED = frozenset({NOWHERE, MAGNITUDE})
"""The codes of what is wrong whatever a judge might say."""

_NAMED = list_words("arguments", "identifiers")
_NUMBERED = list_words("arguments", "numbered")
_SELF_MADE = list_words("arguments", "self_made")
"""Words in the names of values that a caller makes up by design."""
_GENERIC_HOSTS = list_words("arguments", "hosts")
_MAKES = list_words("arguments", "makes")
_WHOLE = re.compile(r"[\w.@:+#/-]{3,128}")
_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_TINY = 3
_CHARS_OF_A_LOOK = 64
_MAX_DEPTH = 16


class CallParameter(NamedTuple):
    """A parameter: its name (for array items, that of the array) and its schema, {} if unknown."""

    name: str
    schema: Mapping[str, JsonValue]

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the name."""
        return split_name(self.name)

    def gives(self, value: JsonValue) -> str | None:
        """Return how the schema itself gives a value: `const`, `default` or `enum`; None if it does not."""
        for name in ("const", "default"):
            if name in self.schema and equals(self.schema[name], value):
                return name
        options = self.schema.get("enum")
        return "enum" if isinstance(options, list) and any(equals(option, value) for option in options) else None

    @property
    def is_closed(self) -> bool:
        """Whether the schema lists its values."""
        return isinstance(self.schema.get("enum"), list) or "const" in self.schema


def find_parameter(tool: ToolDef | None, keys: tuple[str, ...]) -> CallParameter:
    """Find the parameter that a path of names leads to. References are not followed: what they hide is unknown."""
    here: JsonValue = cast("JsonValue", tool.parameters) if tool is not None else None
    for key in keys[:_MAX_DEPTH]:
        properties = _find_items(here).get("properties")
        here = properties.get(key) if isinstance(properties, dict) else None
    return CallParameter(keys[-1] if keys else "", _find_items(here))


def _find_items(node: JsonValue) -> Mapping[str, JsonValue]:
    for _ in range(4):
        if not isinstance(node, Mapping):
            return {}
        items = node.get("items")
        if not isinstance(items, Mapping):
            return node
        node = cast("JsonValue", items)
    return {}


class Located(NamedTuple):
    """An argument with its origin, and what is said against it."""

    grounded: Grounded
    note: str = ""


class CallReader:
    """Locates the arguments of a trace's calls, each in what the model could know when it made the call."""

    def __init__(self, history: History, meter: Meter | None = None) -> None:
        """`meter`: that of the item; it is charged for every search without an index."""
        self.history, self.meter = history, meter or Meter()
        told = [message.text for message in history.trace.messages if message.role == "system"]
        self.counts_cents = any(map(says_minor, told))
        self.deriver = Deriver()

    def locate(self, step: Step, tool: ToolDef | None) -> list[Located]:
        """Return the origin of each leaf of a call's arguments, at most 500; [] if they are not an object."""
        if step.call.arguments is None:
            return []
        arguments = cast("JsonValue", dict(step.call.arguments))
        leaves = list_leaves(arguments, f"/steps/{step.index}/call/arguments", MAX_ARGUMENTS)
        return [_Argument(leaf, step, tool, self).locate() for leaf in leaves]

    def find_gap(self, message: int) -> str:
        """Return the pointer of something that the model could read before a message and code cannot, or ""."""
        results = [(step.index, step.result) for step in self.history.trace.steps if step.message < message]
        unseen = [f"/steps/{n}/result" for n, result in results if result is None or has_media(result.content)]
        unread = [part.path for part in self.history.trace.unread if part.kind != "call" and part.path.count("/") > 1]
        return next(iter([*unread, *unseen]), "")


class _Argument:
    """One leaf of a call's arguments."""

    def __init__(self, leaf: Leaf, step: Step, tool: ToolDef | None, reader: CallReader) -> None:
        self._leaf, self._step, self._tool, self._reader = leaf, step, tool, reader
        self._known = reader.history.know(step.message)
        self._parameter = find_parameter(tool, leaf.keys)
        self._text = format_value(leaf.value)

    def locate(self) -> Located:
        value = self._leaf.value
        given = self._parameter.gives(value)
        if given:
            return self._build("given", (), given)
        if value is None or isinstance(value, bool) or value == "":
            return self._build("general")
        whole = repr(value) if not isinstance(value, str) else value
        if is_identifier(whole, self._parameter, self._step.call.name) and (
            isinstance(value, str) or len(whole) > _TINY
        ):
            return self._locate_identifier(whole)
        return self._locate_number(float(value)) if not isinstance(value, str) else self._locate_text(value)

    def _locate_identifier(self, value: str) -> Located:
        code = normalize_code(value)
        near = self._prefer(self._known.find(Reading("code", code), limit=16))
        if near is not None and near.source in STRONG:
            return self._build_near(near)
        spoken = self._find_spoken(LEADING_ZEROS.sub("", code)) if len(code) > _TINY else None
        if spoken is not None and spoken.source in STRONG:
            return self._build("found" if spoken.source == "result" else "given", (spoken.pointer,), "spelling")
        pieces = [self._find_piece(piece) for piece in split_plain(value) if any(map(str.isdecimal, piece))]
        if len(split_plain(value)) > 1 and pieces and all(pieces):
            return self._build("given", tuple([piece for piece in pieces if piece]), "concatenation")
        doubt = self._find_doubt(value, code, near, spoken)
        if doubt is not None:
            return self._build("nowhere", doubt[1], code=SUSPECTED, note=doubt[0])
        return self._build("nowhere", code=NOWHERE, note=f"{self._text} is in no message and no result before the call")

    def _find_doubt(
        self, value: str, code: str, near: Fact | None, spoken: SpokenText | None
    ) -> tuple[str, tuple[str, ...]] | None:
        """Return why an identifier that nobody gave may have a source after all, with its pointer; None if nothing does."""
        if self._known.full:
            return "not all of the trace was read", ()
        own = near.pointer if near is not None else spoken.pointer if spoken is not None else None
        if own is not None:
            return f"{self._text} stands only in {self._reader.history.name_writer(own)}", (own,)
        digits = re.sub(r"\D", "", value)
        kin = self._find_piece(digits) if len(digits) > _TINY and digits != code else None
        if kin is not None:
            return f"of {self._text} only the digits, or another form, were given", (kin,)
        gap = self._reader.find_gap(self._step.message)
        if gap:
            return f"{self._text} is in nothing that could be read, and {gap} could not", ()
        public = "phone" in self._parameter.words or (value.isdecimal() and len(value) <= _TINY)
        hosts = set(split_plain(value.partition("@")[2])[:-1]) - _GENERIC_HOSTS if "@" in value else set[str]()
        if public or any(map(self._known.has_word, hosts)):
            return f"{self._text} is in no message and no result before the call, but may be publicly known", ()
        return None

    def _find_spoken(self, code: str) -> SpokenText | None:
        """Find an earlier text with the characters of a code in order, and zeros before its numbers."""
        texts = self._reader.history.spoken
        self._reader.meter.spend("looks", 1 + texts.marks[self._step.message] // _CHARS_OF_A_LOOK)
        return texts.find(code, self._step.message)

    def _find_piece(self, piece: str) -> str | None:
        readings = [Reading("code", piece)]
        if piece.isdecimal():
            day = read_iso_day(f"{piece[:4]}-{piece[4:6]}-{piece[6:]}") if len(piece) == 8 else None
            readings += [Reading("number", float(piece)), *([Reading("day", day)] if day else [])]
        near = self._prefer([near for reading in readings for near in self._known.find(reading, limit=16)])
        if near is not None and near.source in STRONG:
            return near.pointer
        spoken = self._find_spoken(piece) if len(piece) > _TINY else None
        return spoken.pointer if spoken is not None and spoken.source in STRONG else None

    def _locate_number(self, value: float) -> Located:
        parameter, words = self._parameter, set(self._parameter.words)
        told = tells_minor(self._tool)
        beside = read_beside(self._step.call.arguments or {})
        minor_told = (told and bool(MONEY_WORDS & words)) or says_minor(str(parameter.schema.get("description")))
        field = read_field(parameter.name, beside, minor_told=minor_told)
        unit = field.unit or Unit("", 1.0)
        bare = Reading("number", value, "", 0.0, "", value)
        reading = bare._replace(value=value * unit.factor + unit.shift, dimension=unit.dimension)
        near = self._prefer(self._known.find(reading, limit=16))
        if near is None and unit.dimension and not field.minor:
            near = self._prefer(self._known.find(bare, limit=16))
        if near is not None and near.source in STRONG:
            return self._build_near(near)
        named = read_field(parameter.name, Beside(), minor_told=False).minor
        unclear = not named and (field.minor or told or self._reader.counts_cents)
        moved = self._find_moved(reading, unclear=unclear)
        if moved is not None:
            return moved
        derived = self._derive((reading,))
        if derived is not None:
            return self._build("derived", derived.sources, derived.how)
        other = self._known.find_last(self._leaf.key) if MONEY_WORDS & words else None
        if other is not None:
            note = f"no one gave {self._text}, where results give {other.text!r} by that name"
            return self._build("nowhere", (other.pointer,), code=SUSPECTED, note=note)
        return self._build_near(near)

    def _derive(self, readings: Sequence[Reading]) -> Derivation | None:
        """Return the step that leads to a value, within a column or record."""
        deriver = self._reader.deriver.move(self._known)
        steps = [] if deriver.exhausted or not readings else build_scene(self._known).steps
        deriver.spend(len(steps))
        found = next(filter(None, map(deriver.derive, readings)), None) or find_derivation(readings, steps)
        return None if found is None or found.by_chance else found

    def _find_moved(self, reading: Reading, *, unclear: bool) -> Located | None:
        """Find the user's amount that has these digits with the decimal point elsewhere."""
        known_unit = reading.dimension == "money"
        if not (known_unit or MONEY_WORDS & set(self._parameter.words)) or not reading.number:
            return None
        said = self._known.list_said()
        money = [fact for fact in said if fact.reading.dimension == "money"]
        digits = f"{abs(reading.written):.10g}".replace(".", "").strip("0")
        for fact in money or [fact for fact in said if not fact.reading.dimension]:
            like = list_digits(f"{abs(fact.reading.number):.10g}").strip("0")
            if like != digits or (not money and len(digits) < 2):
                continue
            if not known_unit and abs(reading.number) == abs(fact.reading.number) * 100:
                return self._build("given", (fact.pointer,), "minor units, perhaps")
            if get_minor_factor(fact.reading.currency) == 1 and reading.written == fact.reading.number:
                return self._build("given", (fact.pointer,))
            shares = any(one.reading.dimension == "share" for one in said)
            alone = bool(money) and len({one.reading.number for one in money}) == 1 and not shares
            sure = alone and known_unit and not unclear
            note = f"the user said {fact.text}, the argument is {self._text}"
            return self._build("nowhere", (fact.pointer,), code=MAGNITUDE if sure else SUSPECTED, note=note)
        return None

    def _locate_text(self, text: str) -> Located:
        mentions = find_values(text) if len(text) <= 64 else []
        whole = next((one for one in mentions if len(one.text) >= len(text.strip()) - 1), None)
        day = mentions[0] if mentions and mentions[0].kind == "day" else None
        readings = [reading for one in mentions if one in (whole, day) for reading in one.readings]
        near = self._prefer([near for reading in readings for near in self._known.find(reading)])
        if near is None:
            named = self._known.find_named(split_plain(text), STRONG)
            near = named[0] if named else None
        if near is not None and near.source in STRONG:
            return self._build_near(near)
        spoken = self._find_spoken(normalize_code(text)) if _TINY < len(text) < 1_000 else None
        if spoken is not None and spoken.source in STRONG:
            return self._build("found" if spoken.source == "result" else "given", (spoken.pointer,), "as words")
        derived = self._derive(readings)
        if derived is not None:
            return self._build("derived", derived.sources, derived.how)
        words = split_plain(text)
        if 1 < len(words) <= 4 and all(map(self._known.has_word, words)):
            return self._build("given", (), "concatenation")
        return self._build_near(near)

    def _prefer(self, near: Sequence[Fact]) -> Fact | None:
        """Return the best source of a value; a part of a longer code is none."""
        order = {"user": 0, "result": 1, "error": 2, "system": 3}
        return min([one for one in near if one.how != "part"], key=lambda one: order.get(one.source, 9), default=None)

    def _build_near(self, near: Fact | None) -> Located:
        if near is None:
            return self._build("nowhere")
        how = None if near.how == "same" else near.how
        return self._build("found" if near.source in ("result", "error") else "given", (near.pointer,), how)

    def _build(
        self,
        origin: Origin,
        sources: tuple[str, ...] = (),
        how: str | None = None,
        *,
        code: str | None = None,
        note: str = "",
    ) -> Located:
        grounded = Grounded(self._text[:200].strip('"'), self._leaf.pointer, origin, sources, how, code=code)
        return Located(grounded, note)


def is_identifier(value: str, parameter: CallParameter, tool_name: str) -> bool:
    """Whether a text is an identifier that must come from somewhere, judging by its form and its parameter's name."""
    words = parameter.words
    if not _WHOLE.fullmatch(value) or parameter.is_closed or _SELF_MADE & set(words):
        return False
    if words and words[-1] in ("id", "email") and _MAKES & set(split_name(tool_name)):
        return False  # the name of the new object
    if _MAIL.fullmatch(value):
        return True
    if not words or not any(map(str.isdecimal, value)):
        return False
    numbered = words[-1] in ("number", "no", "num", "code", "ref", "reference") and bool(_NUMBERED & set(words))
    return numbered or bool(_NAMED & set(words[-2:]))
