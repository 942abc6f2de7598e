"""Say what an unread part of a source could be: a call, a result, a reply, or a sign that something was lost.

One judgement for all formats. It knows no format's members: it looks at the shape of an object (a name beside arguments,
an id that pairs), at words in the names of members, in several languages, and at the tools and calls of the trace.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Flag, auto
from functools import lru_cache
from typing import Any, NamedTuple, cast

from pydantic import JsonValue

from service.core.json.parsing import parse_or_none
from service.core.json.pointers import escape_token
from service.core.trace import ToolCall, UnreadKind
from service.intake.texts import build_tool_call, parse_text, to_snake, unflatten
from service.intake.unread_parts.repeated_calls import PossibleCall

JsonObject = Mapping[str, Any]
MAX_LEVELS = 64
"""Levels of an unread part that are looked at."""


def clip(name: str) -> str:
    """Shorten a source's name to what a reason quotes."""
    return name if len(name) <= 60 else f"{name[:60]}..."


class Hint(Flag):
    """What the name of a member suggests that it holds."""

    NONE = 0
    TOOL = auto()
    """It speaks of tools, functions or calls."""
    NAME = auto()
    ARGUMENTS = auto()
    OWN_ARGUMENTS = auto()
    """Only a call has arguments of this name."""
    CALLS = auto()
    """One call or several."""
    CALL_ID = auto()
    RESULT = auto()
    LOSS = auto()
    """Something was left out, cut or hidden."""
    ENDING = auto()


_TOOL = (
    r"tool|func|werkzeug|funktion|herramienta|funci[oó]n|outil|fonction|ferramenta|strumento|工具|ツール|関数|函数|"
    r"инструмент|plugin|skill"
)
_CALL = r"call|invo[ck]|aufruf|llamad|appel|chiamat|chamad|呼び出し|调用|вызов|exec|use[sd]?\b|_use|request|action|step"
_WORDS: Mapping[Hint, re.Pattern[str]] = {
    Hint.TOOL: re.compile(_TOOL),
    Hint.NAME: re.compile(
        rf"(?:name|nom|nombre|nome|bezeichnung|名前|名称|имя|^id)$|^(?:{_TOOL})\w*$|^(?:action|method|command|fn|operation|op|acci[oó]n|aktion)$"
    ),
    Hint.ARGUMENTS: re.compile(
        r"(?<![a-z])arg(?:s|ument\w*)?$|param\w*$|^(?:tool_)?kwargs$|input\w*$|payload|eingabe\w*$|entrada\w*$|entr[ée]e\w*$|引数|参数|パラメータ|аргумент|параметр|^(?:with|body|values|data)$"
    ),
    Hint.OWN_ARGUMENTS: re.compile(
        r"(?<![a-z])arg(?:s|ument\w*)$|^(?:tool_)?kwargs$|(?:tool|action|function|call)_?\w*(?:input|param)\w*$|引数|аргумент"
    ),
    Hint.CALLS: re.compile(
        rf"(?:{_TOOL})\w*?_?(?:{_CALL})|(?:aufruf|appel|llamad|chiamat|invo[ck]ation|invoked|呼び出し|调用|вызов)|^calls?$|^actions?$|called$"
    ),
    Hint.CALL_ID: re.compile(r"(?:tool|function)?_?(?:use|call)_?id$|^invocation_?id$"),
    Hint.RESULT: re.compile(
        r"result\w*$|valor$|output\w*$|response$|observation|returned|return_?value|content$|ergebnis\w*$|r[ée]sultat\w*$|resultado|risultato|結果|结果|результат"
    ),
    Hint.LOSS: re.compile(
        r"drop+ed|truncat|compacted|redact|omit+ed|cut_?off|abgeschnitten|gek[üu]rzt|tronqu|truncad|lost_|elided|clipped|incomplete|interrupted|aborted|timed_?out|cancel+ed"
    ),
    Hint.ENDING: re.compile(
        r"(?:finish|stop|end|ending|terminat\w+|complet\w+|done|abbruch\w*)_?(?:reason|type|cause|status|grund)?$|^(?:status|state|outcome|reason)$"
    ),
}
_RETURNED = re.compile(
    r"(?:result|output|observation|returned|return_value|ergebnis\w*|r[ée]sultat\w*|resultado\w*|risultato|respuesta\w*|r[ée]ponse\w*|antwort\w*|結果|结果|результат)s?$"
    r"|^(?:respuesta|r[ée]ponse|antwort)_"
)
"""Members that hold what something returned."""
_REFERENCE = re.compile(r"few_?shot|(?:^|_)examples?(?:$|_)|^(?:expected|gold|golden|reference)s?(?:$|_)|ground_?truth")


def is_reference(name: str) -> bool:
    """Whether a member of this name holds what was done elsewhere, or should have been done: its calls were not made here.

    >>> is_reference("expectedCalls"), is_reference("few-shots"), is_reference("unexpected")
    (True, True, False)
    """
    return _REFERENCE.search(to_snake(name)) is not None


@lru_cache(maxsize=8192)
def classify(name: str) -> Hint:
    """Return what the name of a member suggests, whatever its case.

    >>> Hint.CALLS in classify("toolCalls"), Hint.ARGUMENTS in classify("argumente"), classify("usage")
    (True, True, <Hint.NONE: 0>)
    """
    text = to_snake(name)
    return Hint(sum(kind.value for kind, words in _WORDS.items() if words.search(text)))


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a trace: its tools with the names of their arguments, and the ids of its calls."""

    tools: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    call_ids: Mapping[str, int] = field(default_factory=dict[str, int])
    """The step of each id."""
    answered: frozenset[int] = frozenset()
    """Steps whose results were read."""
    waits: bool = False
    """Whether a step has no result, or an empty one."""
    listed: bool = False
    """Whether the log lists the tools on offer."""


class Suspect(NamedTuple):
    """What a place in an unread part could be. `call` of a call, as far as it can be read; `step` of a result.

    `source`: the object that a call is read from.
    """

    kind: UnreadKind
    path: str
    call: ToolCall | None = None
    step: int | None = None
    source: JsonObject = {}


_CALL_TYPE = re.compile(r"(?:^|[_-])(?:call|use|request|invocation)$|^(?:dynamic-)?tool[_-]", re.IGNORECASE)
_NO_CALL_TYPE = re.compile(r"(?:http|api|llm|model|bad|invalid)_(?:call|request)(?:_error)?$", re.IGNORECASE)
"""Calls of models and services, which are not tool calls."""
_RESULT_TYPE = re.compile(r"(?:result|output|response|return)s?$", re.IGNORECASE)


def guess_kind(type_name: str) -> UnreadKind:
    """Guess from its name what an unread type may be: a call, a result, or text.

    >>> guess_kind("mcp_tool_use"), guess_kind("tool-weather"), guess_kind("tool_result"), guess_kind("audio")
    ('call', 'call', 'result', 'text')
    """
    if _RESULT_TYPE.search(type_name):
        return "result"
    if _NO_CALL_TYPE.search(type_name):
        return "text"
    return "call" if _CALL_TYPE.search(type_name) else "text"


_SEARCHES: Mapping[str, str] = {
    **dict.fromkeys(("webSearchQueries", "web_search_queries"), "google_search"),
    **dict.fromkeys(("urlMetadata", "url_metadata"), "url_context"),
}
"""Members by which Gemini reports a call of a tool that it runs itself, and the name of that tool."""
_IDENTIFIER = re.compile(r"[^\W\d][\w.:/-]{0,127}")
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema", "schema", "json_schema")


def read_call(raw: JsonObject, holder: str, around: JsonObject, known: Known) -> ToolCall | None:
    """Return the call that an object could be, as far as it can be read; None if it could be none.

    `holder`: the name of the member that holds it; `around`: the object with that member, which may have the call's id.

    >>> read_call({"werkzeug": "f", "argumente": {"x": 1}}, "", {}, Known())
    ToolCall(id=None, name='f', arguments={'x': 1}, raw={'x': 1}, problem=None, captured=True, tool_id=None)
    >>> read_call({"name": "Ann", "input": {"x": 1}}, "form", {}, Known())
    """
    for name, tool in _SEARCHES.items():
        if raw.get(name):
            return build_tool_call(None, tool, None)
    if _is_definition(raw):
        return None
    keys = {name: classify(name) for name, value in raw.items() if isinstance(value, (str, dict, list))}
    names = [one for one, key in keys.items() if Hint.NAME in key and one not in ("id", "type")]
    signs = _Signs(
        [one for one in names if _is_identifier(raw[one])],
        next((one for one in keys if isinstance(raw[one], str) and raw[one] in known.tools), None),
        next((one for one, key in keys.items() if Hint.ARGUMENTS in key and _is_arguments(raw[one], key)), None),
        classify(holder),
        any(Hint.CALL_ID in key for key in keys.values()),
    )
    if not (_is_typed_call(raw, signs) or _is_call(raw, signs, known)):
        return _read_keyed(raw, holder, known)
    plain = [one for one in signs.names if Hint.CALL_ID not in keys[one]]
    name = signs.offered or next(iter(plain or signs.names), None)
    inner = signs.arguments or next((one for one in keys if isinstance(raw[one], dict)), None)
    pairs = [pair for one in (raw, around) for pair in one.items()]
    ids = [value for key, value in pairs if isinstance(value, str) and (key == "id" or Hint.CALL_ID in classify(key))]
    if name is None:  # the type may hold it, as Vercel's `tool-weather` does
        head, _, named = str(raw.get("type") or "").partition("-")
        named = named if head == "tool" and guess_kind(named) != "call" else ""
    else:
        named = raw[name]
    return build_tool_call(ids[0] if ids else None, named, raw.get(inner) if inner else None)


class _Signs(NamedTuple):
    names: list[str]
    """Those that could name a tool."""
    offered: str | None
    """The one that names a tool of the trace."""
    arguments: str | None
    held: Hint
    """What the member that holds the object suggests."""
    identified: bool
    """Whether it has the id of a call."""


def _is_typed_call(raw: JsonObject, signs: _Signs) -> bool:
    """Whether an object's type says that it is a call, and it has more than its type."""
    kind = raw.get("type") or raw.get("part_kind")
    if not isinstance(kind, str) or guess_kind(kind) != "call":
        return False
    asks = kind.lower().endswith("request")  # of anything: what is asked for must be there
    return bool(signs.names or signs.arguments or signs.identified or signs.offered) or (len(raw) > 1 and not asks)


def _is_call(raw: JsonObject, signs: _Signs, known: Known) -> bool:
    if signs.offered is not None:
        taken = known.tools[cast("str", raw[signs.offered])]
        values = cast("Mapping[str, JsonValue]", raw).values()
        fits = any(isinstance(value, dict) and value and taken.issuperset(value) for value in values)
        alone = signs.identified and not _has_result(raw)
        return signs.arguments is not None or Hint.CALLS in signs.held or fits or alone
    if signs.identified and signs.arguments is None and _has_result(raw):
        return False
    if signs.arguments is not None and signs.names:
        own = Hint.OWN_ARGUMENTS in classify(signs.arguments)
        tooled = any(Hint.TOOL in classify(name) for name in signs.names) and not known.tools
        return own or tooled or Hint.CALLS in signs.held or signs.identified or "action" in signs.names
    held = Hint.CALLS in signs.held and Hint.TOOL in signs.held
    return held and bool(signs.names or signs.arguments) and not _has_result(raw)


def _read_keyed(raw: JsonObject, holder: str, known: Known) -> ToolCall | None:
    """Read a call whose tool's name is the member that has its arguments: `{"get_weather": {"city": "Oslo"}}`."""
    for name, value in cast("Mapping[str, JsonValue]", raw).items():
        if not isinstance(value, dict):
            continue
        if name in known.tools and value and known.tools[name].issuperset(value):
            return build_tool_call(None, name, value)
        if len(raw) == 1 and Hint.CALLS in classify(holder) and classify(name) is Hint.NONE and _is_identifier(name):
            return build_tool_call(None, name, value)
    return None


def _is_identifier(value: object) -> bool:
    return isinstance(value, str) and _IDENTIFIER.fullmatch(value) is not None


def _is_arguments(value: object, key: Hint) -> bool:
    """Whether a value may be arguments: an object, or JSON text of one; where only a call has such a member, any text."""
    if isinstance(value, str):
        return Hint.OWN_ARGUMENTS in key or value.lstrip()[:1] == "{"
    return isinstance(value, dict)


def _has_result(raw: JsonObject) -> bool:
    return any(Hint.RESULT in classify(name) and value is not None for name, value in raw.items())


def _is_definition(raw: JsonObject) -> bool:
    """Whether an object defines a tool: it has a JSON Schema of arguments."""
    schemas = (cast("JsonValue", raw.get(name)) for name in _SCHEMAS)
    return any(
        isinstance(schema, dict) and ("properties" in schema or schema.get("type") in ("object", "OBJECT"))
        for schema in schemas
    )


def read_result(raw: JsonObject, path: str, known: Known) -> Suspect | None:
    """Return the result that an object could be; None if it could be none. What a step has returned already counts no more."""
    role, kind = raw.get("role"), raw.get("type") or raw.get("part_kind")
    says = role in ("tool", "function") or (isinstance(kind, str) and guess_kind(kind) == "result")
    steps = [known.call_ids[value] for value in raw.values() if isinstance(value, str) and value in known.call_ids]
    if not _has_result(raw):
        return None
    if steps:
        return Suspect("result", path, step=steps[0]) if steps[0] not in known.answered else None
    named = any(isinstance(value, str) and value in known.tools for value in raw.values())
    return Suspect("result", path) if known.waits and (says or named) else None


def list_suspects(value: JsonValue, path: str, known: Known, holder: str = "") -> Iterator[Suspect]:
    """Iterate over what the parts of an unread value could be, outermost first.

    What a tool returned is never a call, whatever it looks like. `holder`: the name of the member that holds the value.
    """
    return _Search(known, _parse_calls).walk(value, path, holder, {})


def list_possible_calls(value: JsonValue, path: str, *, packed: bool = False) -> Iterator[PossibleCall]:
    """Iterate over what looks like a call in JSON of unknown form: outermost ones only, in order.

    `packed`: the value encodes JSON in texts and dotted keys, as attributes and metadata do; all calls get the pointer `path`.

    >>> [mention] = list_possible_calls([{"id": "c", "function": {"name": "f", "arguments": '{"x": 1}'}}], "/x")
    >>> mention.path, mention.call.id, mention.call.name, mention.call.arguments
    ('/x/0/function', 'c', 'f', {'x': 1})
    >>> attributes = {"a.calls": '[{"name": "f", "args": {}}]', "b.0.name": "g", "b.0.arguments": "{}"}
    >>> [(mention.path, mention.call.name) for mention in list_possible_calls(attributes, "/x", packed=True)]
    [('/x', 'f'), ('/x', 'g')]
    """
    search = _Search(Known(), _unpack if packed else None)
    for one in search.walk(value, path, "", {}):
        if one.call is not None:
            yield PossibleCall(one.call, path if packed else one.path)


def looks_like_call(raw: JsonObject) -> bool:
    """Whether an object could be a call.

    >>> looks_like_call({"type": "mcp_call", "name": "f"}), looks_like_call({"name": "run 1"})
    (True, False)
    """
    return read_call(raw, "", {}, Known()) is not None


Unpack = Callable[[str, JsonValue], JsonValue]
"""Decodes a value, given its member's name, before it is looked at."""
_PACKED = re.compile(
    r"""["'](?:[^"']{0,40}(?:""" + _TOOL + r"""|call|arg|action)[^"']{0,40}|name)["']\s*:""", re.IGNORECASE
)


def _parse_calls(_: str, value: JsonValue) -> JsonValue:
    """Parse JSON text that could hold calls; any other text holds nothing."""
    if isinstance(value, str):
        return parse_or_none(value) if value.lstrip()[:1] in ("{", "[") and _PACKED.search(value) else None
    return value


def _unpack(name: str, value: JsonValue) -> JsonValue:
    """Decode texts and dotted keys, but no prose, whatever it looks like, unless it is a list of parts."""
    if isinstance(value, str) and (name not in ("content", "text") or value.startswith("[{")):
        return _unpack("", spelt) if isinstance(spelt := parse_text(value), dict) else spelt
    return cast("JsonValue", unflatten(value)) if isinstance(value, dict) else value


class _Search(NamedTuple):
    known: Known
    unpack: Unpack | None

    def walk(self, value: JsonValue, path: str, holder: str, around: JsonObject, level: int = 0) -> Iterator[Suspect]:
        """Iterate over what a value and its parts could be. `around`: the object with the member `holder` that holds it."""
        if level > MAX_LEVELS or not isinstance(value, (dict, list, str)):
            return
        if self.known.waits and value and _RETURNED.search(to_snake(holder)) and Hint.CALLS not in classify(holder):
            calls = [one for one in self.walk(value, path, "", around, level + 1) if one.kind == "call"]
            yield from calls or [Suspect("result", path)]
            return
        value = self.unpack(holder, value) if self.unpack else value
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield from self.walk(item, f"{path}/{index}", holder, around, level + 1)
        elif isinstance(value, dict):
            call = read_call(value, holder, around, self.known)
            found = read_result(value, path, self.known) if call is None else Suspect("call", path, call, source=value)
            if found is not None:
                yield found
            else:  # not what a result returned, nor a tool's schema
                returned = value.get("role") in ("tool", "function") or guess_kind(str(value.get("type"))) == "result"
                for name, item in value.items():
                    skipped = is_reference(name) or (name in _SCHEMAS and _is_definition(value))
                    if not skipped and not (returned and Hint.RESULT in classify(name)):
                        yield from self.walk(item, f"{path}/{escape_token(name)}", name, value, level + 1)
