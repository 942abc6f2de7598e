"""Find calls that a model wrote into its text: the parser of its server missed them.

Two kinds of evidence count. A **marked** call stands behind a mark that models are trained to call with (`<tool_call>`,
`[TOOL_CALLS]`, `<|python_tag|>`, `<function=`), or is an object of a call as Python prints it. An **unmarked** call names a
tool on offer with arguments that the tool takes, in any notation, and ends its text: a model stops after a call. Where no tools
are listed, it is all of the text, in Python. Code that is quoted, and what a user asked to be shown, is an example and no call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.parsing import parse_or_none
from service.core.json.pointers import split_pointer
from service.intake.texts import PythonCall, drop_thoughts, parse_calls, read_literal
from service.intake.unread_parts.suspects import Known, list_suspects


class TextCall(NamedTuple):
    """A call in a text. `name` is "" and `arguments` None where they cannot be read.

    `whole`: it is closed, its arguments are an object, and it can mean nothing else.
    """

    form: str
    name: str = ""
    arguments: dict[str, JsonValue] | None = None
    whole: bool = False


MAX_CHARS = 40_000
"""Characters of a text in which calls are looked for: at its beginning and its end where it is longer."""
MAX_MARKS = 50
"""Marks of one text that are followed."""
MAX_ENDS = 5
"""Brackets at which a call in Python may end that are tried."""
MAX_BLOCK_CHARS = 4_000
"""Characters of a marked call that is not JSON."""
MAX_ASKED_CHARS = 2_000
"""Characters of the user's words that are looked at."""
MAY_CALL = re.compile(r"[{(\[<:]")
"""What every call in a text has: a text without it holds none."""
_WORD = r"(?:tool|function|func)s?[_▁\- ]?(?:calls?|use|invo\w*|exec\w*|request|prefix|code)"
_MARK = re.compile(
    r"(?P<token><[|\uff5c][^<>\n]{0,40}?(?:"
    + _WORD
    + r"|calls|python_tag|python_start|plugin|action_start|START_ACTION|constrain|call)"
    r"[^<>\n]{0,60}?>|\[TOOL_CALLS\]|<start_function_call>|functools(?=\[)|\bto=functions\.|<\|open\|>call\b"
    r"|✿FUNCTION✿:|\[TOOL_REQUEST\]|\bdefault_api\.(?=\w+\())"
    r"|(?P<printed>(?:ToolCall|ToolUse|FunctionCall)\w{0,20}\((?=\w+=))"
    r"|(?P<tag><tool>(?=[\w.-]+</tool>)|\bcall:(?=[A-Za-z_][\w.-]*\{)|<(?i:TOOLCALL|FUNCTION_CALL)>|(?:\]<\]\w+\[>\[)?<(?!/)[\w:\uff5c|]{0,24}?(?:"
    + _WORD
    + r"|invoke|use_\w{0,20}tool|function(?=[= ])|tool(?=[= ]))[^<>\n]{0,200}>)"
    r"|(?P<react>^[ >*#]{0,3}Action(?: \d+)?:[ \t*`]*(?=[\w\[`\n]))",
    re.MULTILINE,
)
_SIGNS = ("<", "[", "Action", "to=functions.", "✿", "default_api.", "call:", "Tool", "FunctionCall")
"""Each mark has one of these."""
_FENCE = re.compile(r"(?m)^[ \t]*(```+|~~~+)[ \t]*([\w+-]*)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL)
_INLINE = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
_CALL_FENCES = frozenset({"tool", "tool_code", "tool_call", "tool_calls", "tool_use", "function_call", "action"})
_PYTHON_FENCES = frozenset({"py", "python", "tool_code", ""})
_END = re.compile(r"(?:[\s\])}>|;.*`]|<[/|\uff5c][^<>\n]{0,60}>|<end_\w+>|\[/\w+\])*\Z")
_EXAMPLE = re.compile(
    r"\b(?:examples?|samples?|e\.g\.|for instance|docs?|documentation|documents?|schemas?|snippets?|curl|endpoints?|payloads?|"
    r"requests? bod\w+|syntax|templates?|beispiel\w*|z\. ?b\.|dokument\w*|ejemplos?|documentaci\w+|exemples?|"
    r"(?:looks? like|show me|write|explain|format|tutorial|code|script|json|yaml|xml)|"
    r"how (?:do|can|would|should|does|to)|wie (?:kann|ruf|sieht)|cómo|comment)\b|例|サンプル|コード|書い",
    re.IGNORECASE,
)


def find_text_calls(text: str, offered: Known, asked: str = "") -> Sequence[TextCall]:
    """Return the calls that a text of the assistant holds. `asked`: the user's words before it.

    >>> tools = Known({"get_weather": {"city"}}, listed=True)
    >>> find_text_calls('<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>', tools)
    [TextCall(form='<tool_call>', name='get_weather', arguments={'city': 'Oslo'}, whole=True)]
    >>> find_text_calls("It rains (a bit).", tools), find_text_calls("Use `get_weather(city='Oslo')`", tools)
    ([], [])
    >>> [call.name for call in find_text_calls("`get_weather(city='Oslo')`", tools)]
    ['get_weather']
    """
    if len(text) > MAX_CHARS:
        text = text[: MAX_CHARS // 2] + "\n" + text[-MAX_CHARS // 2 :]
    text = drop_thoughts(text).strip() if "<think" in text else text.strip()
    text = text.rpartition("</think>")[2].strip()
    quoted = _list_quoted(text)
    found = list(_find_marked(text, offered, quoted))
    return found or list(_find_unmarked(text, offered, asked[-MAX_ASKED_CHARS:], quoted))


def find_thought_calls(text: str, offered: Known) -> Iterator[TextCall]:
    """Find the calls that a thought holds where the parser missed its end: marked and whole, of tools on offer.

    >>> tools = Known({"get_weather": {"city"}}, listed=True)
    >>> [call.name for call in find_thought_calls("I need get_weather(city='Oslo')", tools)]
    []
    """
    text = text[-MAX_CHARS:].strip()
    marked = _find_marked(text, offered, _list_quoted(text))
    return (call for call in marked if call.whole and call.name in offered.tools)


def _list_quoted(text: str) -> list[range]:
    """List where code stands: fenced blocks, except those whose tag says that they call, and code within a line."""
    if "`" not in text and "~~~" not in text:
        return []
    fences = [found for found in _FENCE.finditer(text) if found[2].lower() not in _CALL_FENCES]
    return [range(*found.span()) for found in (*fences, *_INLINE.finditer(text))]


def _find_marked(text: str, offered: Known, quoted: Sequence[range]) -> Iterator[TextCall]:
    if not any(map(text.__contains__, _SIGNS)):
        return
    end, calls = -1, list[TextCall]()
    for mark in islice(_MARK.finditer(text), MAX_MARKS):
        shown = mark.lastgroup != "react" and any(mark.start() in one for one in quoted)
        if mark.start() < end or shown or _CLOSING.search(_read_head(mark)):
            continue
        call, end = _read_marked(text, mark, offered)
        calls += [] if call is None else [call]
    named = [call for call in calls if call.arguments is not None]
    yield from named or [call for call in calls if call.name] or calls


def _read_marked(text: str, mark: re.Match[str], offered: Known) -> tuple[TextCall | None, int]:
    """Read what follows a mark: return the call, if it is one, and where it ends."""
    if mark.lastgroup == "react":
        return _read_react(text, mark, offered)
    if mark.lastgroup == "printed":
        named = _PRINTED_NAME.search(text, mark.end(), mark.end() + MAX_BLOCK_CHARS)
        return TextCall(mark[0], named[1] if named else ""), mark.end()
    head = _read_head(mark)
    form = head.rstrip(">") + (">" if mark[0].strip().endswith(">") else "")
    call, end = _read_inner(text, mark, offered)
    if call is not None:
        closed = bool(_END.match(text, end)) or text[end : end + 60].lstrip(" \n`;,]").startswith(("<", "["))
        unsaid = not offered.listed and call.arguments is not None
        known = call.name in offered.tools or unsaid or mark.lastgroup == "token" or call.whole
        return (call._replace(form=form, whole=call.whole and closed) if known else None), end
    rest = text[mark.end() :].strip()
    named = next((name for name in offered.tools if name in text[mark.start() : mark.end() + 200]), "")
    certain = mark.lastgroup == "token" or bool(named) or not rest
    return (TextCall(form, named) if certain else None), mark.end()


def _read_head(mark: re.Match[str]) -> str:
    """Return a mark without its attributes: the name of a tool in it says nothing of the mark."""
    return re.split(r"[= ]", mark[0].strip(), maxsplit=1)[0]


_CLOSING = re.compile(r"(?<![A-Za-z])(?:end|END|suffix|close)(?![a-z])|<\|call\|>")
"""Marks at which a call ends."""
_PRINTED_NAME = re.compile(r"""\b(?:tool_)?name=['"]([\w.:/-]+)['"]""")
_NAME_IN_TAG = re.compile(r"""(?:=|\b(?:name|tool)\s*=)\s*["']?([\w.:/-]+)["']?""")
_PARAMETER = re.compile(
    r"""<[^<>\n]{0,30}?(?:parameter|param|argument)(?:[= ][^<>\n]{0,10}?(?:name=|key=)?["']?)([\w.-]+)["']?[^<>\n]*>(.*?)"""
    r"""(?=</|<[|\uff5c]/?close|<[^<>\n]{0,30}?(?:parameter|param)\b|\Z)""",
    re.DOTALL,
)
_ARG_KEY = re.compile(r"<arg_key>([^<]*)</arg_key>\s*<arg_value>([^<]*)</arg_value>")
_PLAIN_TAG = re.compile(r"<([A-Za-z_][\w.-]*)>([^<]*)</\1>")
_NAME = re.compile(
    r"(?:\s|call:|function\b[ \t]*(?=<)|functions\.|\[CALL_ID\]\w*|<[^<>\n]{0,40}?sep[^<>\n]{0,3}>)*([A-Za-z_][\w.-]*)"
)


def _read_inner(text: str, mark: re.Match[str], offered: Known) -> tuple[TextCall | None, int]:
    """Read a marked call in any of the notations: JSON, a name before JSON, tags of parameters, or Python."""
    at = mark.end()
    rest = text[at:]
    start = len(rest) - len(rest.lstrip(" \n\t:"))
    if rest[start : start + 1] in ("{", "["):
        call, end = _read_bracketed(rest, start, mark, offered)
        return call, at + end
    closing = _BLOCK_END.search(text, at, at + MAX_BLOCK_CHARS)
    block_end = closing.start() if closing else min(len(text), at + MAX_BLOCK_CHARS)
    block = text[at:block_end]
    named = _NAME_IN_TAG.search(mark[0]) or re.search(
        r"<[^<>\n]{0,30}?(?:invoke|function|call)[^<>\n]*?[= ][^<>\n]{0,12}?[\"']?([\w.:/-]+)[\"']?[^<>\n]*>", block
    )
    inner_name = re.search(r"<(?:tool_name|name|tool)>\s*([\w.:/-]+)\s*</", block)
    plain = _NAME.match(block)
    name = named[1] if named else inner_name[1] if inner_name else plain[1] if plain else ""
    if not name:
        return None, at
    body = block[plain.end() :] if plain and not named and not inner_name else block
    python = _parse_first(block) if plain and body.lstrip().startswith("(") else None
    if python:
        return TextCall("", python[0].name, python[0].arguments, python[0].arguments is not None), block_end
    pairs = _ARG_KEY.findall(body) or _PARAMETER.findall(body)
    if pairs:
        return TextCall("", name, {key.strip(): _read_plain(value) for key, value in pairs}, True), block_end
    brace = body.find("{")
    value = _decode(body, brace)[0] if brace >= 0 else None
    if isinstance(value, dict):
        return TextCall("", name, value, True), block_end
    plain_tags = [
        (key, value)
        for key, value in _PLAIN_TAG.findall(body)
        if key not in ("tool_name", "name", "server_name", "arguments", "parameters")
    ]
    if plain_tags:
        return TextCall("", name, {key: _read_plain(value) for key, value in plain_tags}, False), block_end
    return TextCall("", name), block_end


def _parse_first(block: str) -> Sequence[PythonCall] | None:
    """Parse the calls of a block, or else the one at its beginning, which another call may hold."""
    ends = [found.end() for found in islice(re.finditer(r"\)", block), MAX_ENDS)]
    return parse_calls(block) or next((calls for end in ends if (calls := parse_calls(block[:end]))), None)


def _read_bracketed(rest: str, start: int, mark: re.Match[str], offered: Known) -> tuple[TextCall | None, int]:
    """Read what begins with a bracket: JSON of calls, JSON of arguments after a mark that names the tool, or Python."""
    value, end = _decode(rest, start)
    calls = list(_list_json_calls(value, offered, strict=False)) if value is not None else []
    if calls:
        return calls[0], end
    before = rest.partition("<")[0]
    python = parse_calls(before[start:]) if rest[start] == "[" else None
    if python:
        return TextCall("", python[0].name, python[0].arguments, python[0].arguments is not None), len(before)
    named = _NAME_IN_TAG.search(mark[0])
    return (TextCall("", named[1], value, True), end) if named and isinstance(value, dict) else (None, 0)


_BLOCK_END = re.compile(
    r"</(?:[^<>\n]{0,24}?)(?:" + _WORD + r"|invoke|function|use_\w{0,20}tool|tool)>"
    r"|<[^<>\n]{0,40}?(?:call▁end|call_end|calls_end|section_end|action_end|END_ACTION|call)[|\uff5c]>|<end_function_call>"
)


def _read_react(text: str, mark: re.Match[str], offered: Known) -> tuple[TextCall | None, int]:
    found = re.compile(
        r"([\w.:/-]+)[*`]*[ \t]*(?:\n+[ \t>*#]*Action(?: \d+)? Input(?: \d+)?:[*]*[ \t]*(.*?)(?=\n[ \t]*Observation|\Z)|[\[(])",
        re.DOTALL,
    ).match(text, mark.end())
    if found is not None and (found[1] in offered.tools or (not offered.listed and found[2] is not None)):
        arguments = parse_or_none((found[2] or "").strip())
        return TextCall(
            "ReAct", found[1], arguments if isinstance(arguments, dict) else None, isinstance(arguments, dict)
        ), found.end()
    block = re.compile(r"\s*```(?:json)?\s*(?=[\[{])").match(text, mark.end())
    value = _decode(text, block.end())[0] if block else None
    return next(_list_json_calls(value, offered, strict=False), None), mark.end()


def _find_unmarked(text: str, offered: Known, asked: str, quoted: Sequence[range]) -> Iterator[TextCall]:
    """Iterate over calls without a mark: they end the text, and nobody asked for an example."""
    fences = list(_FENCE.finditer(text))
    last = fences[-1] if fences and _END.match(text, fences[-1].end()) else None
    quoted_whole = _INLINE.fullmatch(text) is not None
    bare = ("", text.strip("`") if quoted_whole else text, "")
    tag, block, before = (last[2].lower(), last[3], text[: last.start()]) if last else bare
    calling = tag in _CALL_FENCES

    def is_shown() -> bool:
        return not calling and bool(len(fences) > 1 or _EXAMPLE.search(asked) or _EXAMPLE.search(before))

    if (last or quoted_whole or len(fences) > 1) and is_shown():
        return
    whole = list(_read_whole(block, offered, python=calling or tag in _PYTHON_FENCES, calling=calling))
    named = None if whole else _find_named(block, offered, () if last or quoted_whole else quoted)
    if named is not None and not is_shown():  # few texts have one, and to look for signs of an example takes long
        whole = [named]
    yield from whole


def _read_whole(block: str, offered: Known, *, python: bool, calling: bool) -> Iterator[TextCall]:
    start = len(block) - len(block.lstrip())
    value, end = _decode(block, start) if block[start : start + 1] in ("{", "[") else (None, 0)
    rest = block[end:].strip(" \n;,")
    if value is not None and (not rest or rest.startswith(("{", "[", "<"))):
        yield from _list_json_calls(value, offered, strict=True)
        return
    written = parse_calls(block) if python else None
    if written:
        unlisted = [call for call in written if calling or (not offered.listed and call.arguments is not None)]
        known = [call for call in written if call.name in offered.tools] or unlisted
        yield from (TextCall("Python", one.name, one.arguments, one.arguments is not None) for one in known)
    tag = _TOOL_TAG.fullmatch(block.strip())
    if tag and tag[1] in offered.tools:
        yield TextCall(f"<{tag[1]}>", tag[1], {key: _read_plain(inner) for key, inner in _PLAIN_TAG.findall(tag[2])})


_TOOL_TAG = re.compile(r"<([A-Za-z_][\w.-]*)>(.*)</\1>", re.DOTALL)


def _find_named(text: str, offered: Known, quoted: Sequence[range]) -> TextCall | None:
    """Find a tool on offer that is followed by arguments that it takes, to the end of the text."""
    for name, taken in offered.tools.items():
        at = text.rfind(name)
        if at < 0 or (at and (text[at - 1].isalnum() or text[at - 1] == "_")) or any(at in one for one in quoted):
            continue
        after = text[at + len(name) :]
        arguments, end = _read_after(after, taken)
        if arguments is not None and _END.match(after, end):
            return TextCall("text", name, arguments)
    return None


def _read_after(after: str, listed: frozenset[str]) -> tuple[dict[str, JsonValue] | None, int]:
    """Read arguments in JSON, as Python's keywords, or one per line; only those that the tool takes count."""
    brace = re.match(r"""["'`*\]\s:=,.|()>-]{0,12}(?:\w{0,20}["'`*\s:=,>|-]{1,12}){0,2}(?=\{)""", after)
    if brace is not None:
        value, end = _decode(after, brace.end())
        if isinstance(value, dict) and (listed.issuperset(value) if listed else bool(value)):
            return value, end
    if after.startswith("(") and (close := after.rfind(")")) > 0:
        calls = parse_calls(f"f{after[: close + 1]}")
        if calls and len(calls) == 1 and calls[0].arguments and (not listed or listed.issuperset(calls[0].arguments)):
            return calls[0].arguments, close + 1
    lines = [line for line in after.split("\n")[1:] if line.strip(" `")]
    pairs = [found for line in lines if (found := re.match(r"""[\s*-]*["']?([\w.-]+)["']?\s*[:=]\s*(.+)$""", line))]
    heads = len(lines) - len(pairs)
    known = {found[1]: _read_plain(found[2].strip("\"' ,")) for found in pairs if found[1] in listed}
    if known and len(known) == len(pairs) and heads <= 1 and not after.split("\n", maxsplit=1)[0].strip(" \"'`:,"):
        return known, len(after)
    return None, 0


_BRACKET = re.compile(r"[\[{]|[\]}]")
_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_]\w*):")


def _read_plain(value: str) -> JsonValue:
    """Read the text of a parameter: JSON where it is an object, a list, a number or a constant."""
    text = value.strip("\n").strip()
    found = parse_or_none(text) if text[:1] in "{[-0123456789tfn" else None
    return text if found is None and text != "null" else found


def _decode(text: str, at: int) -> tuple[JsonValue, int]:
    """Decode the JSON value at a place, also one with Python's quotes; return it and where it ends. None: there is none.

    Gemma's models write keys bare, and texts between marks of their own.
    """
    if "<escape>" in text or '<|"|>' in text:
        text = _BARE_KEY.sub(r'\1"\2":', text[at:].replace("<escape>", '"').replace('<|"|>', '"'))
        value, _ = _decode(text, 0)
        return value, len(text)
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError):
        depth = end = 0
        for bracket in _BRACKET.finditer(text, at):
            depth += 1 if bracket[0] in "[{" else -1
            if not depth:
                end = bracket.end()
                break
        value = read_literal(text[at:end]) if end else None
        value = parse_or_none(_BARE_KEY.sub(r'\1"\2":', text[at:end])) if value is None else value
    return value, end


_CALL_KEYS = frozenset({"tool_calls", "function_call", "tool_call", "tool_uses", "calls", "function"})
"""Members that may hold calls without a mark before them."""


def _list_json_calls(value: JsonValue, offered: Known, *, strict: bool) -> Iterator[TextCall]:
    """Iterate over the calls in JSON of a text. `strict`: without a mark, so that one of no tool on offer must say what it is."""
    for found in list_suspects(value, "", offered, "calls"):
        call, raw = found.call, found.source
        if call is None or call.arguments is None or not call.name:
            continue
        if strict and not all(token.isdecimal() or token in _CALL_KEYS for token in split_pointer(found.path)):
            continue
        typed = raw.get("type") in ("tool_use", "tool_call", "function_call")
        said = typed or ("name" in raw and ("arguments" in raw or set(raw) == {"name", "parameters"}))
        if call.name in offered.tools or said or not strict:
            whole = call.name in offered.tools or not offered.listed
            yield TextCall("JSON", call.name.removeprefix("functions."), {**call.arguments}, whole)
