"""Decode what a text spells: arguments, results, JSON under dotted keys, thoughts, and calls in Python, which never run."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

from service.core.json.members import JsonObject, list_objects, read_type
from service.core.json.parsing import MAX_DEPTH, UnreadableError, parse, parse_or_none, read_structure
from service.core.json.values import name_type
from service.core.trace import ToolCall

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BREAKS = str.maketrans("- .", "___")


def to_snake(name: str) -> str:
    """Spell a name in snake case: so are the names compared that others chose.

    >>> to_snake("functionCall"), to_snake("tool-result"), to_snake("Tool name")
    ('function_call', 'tool_result', 'tool_name')
    """
    return _HUMP.sub("_", name).lower().translate(_BREAKS)


_FENCE = re.compile(r"\s*```(?:\w+)?[ \t]*\n(.*?)```\s*\Z", re.DOTALL)


def unfence(text: str) -> str:
    """Return what stands between the fences of a text that is one fenced block; any other text unchanged.

    >>> unfence("```json\\n[1]\\n```"), unfence("[1]")
    ('[1]\\n', '[1]')
    """
    fenced = _FENCE.match(text) if text.lstrip().startswith("```") else None
    return fenced[1] if fenced else text


def parse_text(value: JsonValue) -> JsonValue:
    """Parse a text that spells a JSON object, list or string; return any other value unchanged.

    >>> parse_text('{"a": 1}'), parse_text('"hi"'), parse_text("hi"), parse_text("5")
    ({'a': 1}, 'hi', 'hi', '5')
    """
    if value == "null":
        return None
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[", '"')):
        return value
    try:
        return parse(value)
    except UnreadableError:
        return value


class Tree(dict[str, JsonValue]):
    """A tree of attributes built here, and therefore safe to extend."""


MAX_KEY_PARTS = 64
"""Parts of a dotted key that become levels of a tree; the rest of a longer key stays one key."""


def unflatten(raw: JsonObject) -> JsonObject:
    """Build the tree that dotted keys spell. Values stay as they are: the keys of an argument may contain dots too.

    >>> unflatten({"tool.name": "f", "input.value": {"a.b": 1}})
    {'tool': {'name': 'f'}, 'input': {'value': {'a.b': 1}}}
    """
    if not any("." in key for key in raw):
        return raw
    tree = Tree()
    for key, value in raw.items():
        *parents, last = key.split(".", MAX_KEY_PARTS)
        here: JsonValue = tree
        for part in parents:
            here = here.setdefault(part, Tree()) if isinstance(here, Tree) else None
        if isinstance(here, Tree):
            here.setdefault(last, value)
    return tree


MAX_LITERAL_CHARS = 100_000


def read_literal(text: str) -> JsonValue:
    """Return what a Python literal spells, as JSON; None if it spells nothing that JSON has.

    >>> read_literal("{'a': [1, None], 'b': (True,)}"), read_literal("{'a': b}"), read_literal("{1}")
    ({'a': [1, None], 'b': [True]}, None, None)
    >>> read_literal("[" * 999)
    """
    if len(text) > MAX_LITERAL_CHARS or "\\" in text:  # an unknown escape makes Python warn
        return None
    try:
        return parse_or_none(json.dumps(ast.literal_eval(text.strip()), allow_nan=False))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


THOUGHT = re.compile(r"<think>(.*?)(</think>|\Z)", re.IGNORECASE | re.DOTALL)
"""A thought within a text, and what ends it: "" if nothing does, so that it extends to the end."""


def drop_thoughts(text: str) -> str:
    """Remove thoughts from a text.

    >>> drop_thoughts("<think>Hm.</think>Yes."), drop_thoughts("Yes.<think>Or"), drop_thoughts("Yes. ")
    ('Yes.', 'Yes.', 'Yes. ')
    """
    return THOUGHT.sub("", text).strip() if THOUGHT.search(text) else text


_CALL = re.compile(r"\s*\[?\s*(?:[A-Za-z_]\w*\s*=\s*)?(?:await\s+)?[A-Za-z_][\w.-]*\(")
_NAMING_CALL = re.compile(r"(?<![\w.-])[A-Za-z_][\w.-]*\(\s*[A-Za-z_]\w*\s*=(?!=)")
_ODD_ESCAPE = re.compile(r"""\\[^\n\\'"abfnrtvx0-7NuU]""")
_CONSTANTS = {"true": True, "false": False, "null": None}


class PythonCall(NamedTuple):
    """A call as written. `arguments` is None unless all of them are named literals."""

    name: str
    arguments: dict[str, JsonValue] | None


def looks_like_calls(text: str) -> bool:
    """Whether a text starts like calls. A cheap test that rejects most texts.

    >>> looks_like_calls("[f(x=1)]"), looks_like_calls("f(1)"), looks_like_calls("It rains (a bit).")
    (True, True, False)
    """
    return _CALL.match(unfence(text)) is not None


def holds_calls(text: str) -> bool:
    """Whether a text starts like calls, or contains a call with named arguments anywhere.

    >>> holds_calls("So: r = f(x=1)"), holds_calls("It rains (a bit), says f(x).")
    (True, False)
    """
    return looks_like_calls(text) or _NAMING_CALL.search(text) is not None


def parse_calls(text: str) -> Sequence[PythonCall] | None:
    """Parse a text that consists of calls: in a list, separated by commas, or one per line.

    None if it is anything else.

    >>> [call.arguments for call in parse_calls('[f(a=[1, (2, None)], b={"c": -1.5}), g.h(x=true)]') or ()]
    [{'a': [1, [2, None]], 'b': {'c': -1.5}}, {'x': True}]
    >>> parse_calls("f(1)"), parse_calls("f(x=g())")
    ([PythonCall(name='f', arguments=None)], [PythonCall(name='f', arguments=None)])
    >>> parse_calls("f(x=1) and more"), parse_calls("[]"), parse_calls("f(" * 99)
    (None, None, None)
    """
    source = unfence(text).strip()
    if not looks_like_calls(source) or _is_hostile(source):
        return None
    nodes = _parse_nodes(source)
    calls = [_read_call(node) for node in nodes]
    found = [call for call in calls if call is not None]
    return found if found and len(found) == len(calls) else None


def list_statement_calls(source: str) -> list[PythonCall] | None:
    """List the calls in a program, in the order in which they are written; None if it is no program.

    A call that is no statement of its own, assigned or printed, has no `arguments`: how often it was made is not written.

    >>> list_statement_calls("r = f(x=1); g(y=2) if r else h(z=3)")
    [PythonCall(name='f', arguments={'x': 1}), PythonCall(name='g', arguments=None), PythonCall(name='h', arguments=None)]
    """
    tree = None if _is_hostile(source) else _parse_program(source)
    if tree is None:
        return None
    calls: list[PythonCall] = []
    for statement in tree.body:
        value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
        printed = (
            value.args[0] if isinstance(value, ast.Call) and _read_name(value.func) == "print" and value.args else None
        )
        nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Call)]
        for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
            call = _read_call(node)
            if call is not None:
                calls.append(call if node in (value, printed) else call._replace(arguments=None))
    return calls


def _is_hostile(source: str) -> bool:
    """Whether a source is too long, too deep (brackets inside strings count), or has an escape that makes Python warn."""
    if len(source) > MAX_LITERAL_CHARS or _ODD_ESCAPE.search(source) or "\0" in source:
        return True
    depth = deepest = 0
    for match in re.finditer(r"[(\[{]|[)\]}]", source):
        depth = depth + 1 if match[0] in "([{" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest > MAX_DEPTH


def _parse_program(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None


def _parse_nodes(source: str) -> Sequence[ast.AST]:
    for written in (source if source.startswith("[") else f"[{source}]", source):
        tree = _parse_program(written)
        if tree is None:
            continue
        values = [node.value if isinstance(node, ast.Expr) else node for node in tree.body]
        return values[0].elts if len(values) == 1 and isinstance(values[0], ast.List) else values
    return ()


def _read_call(node: ast.AST) -> PythonCall | None:
    name = _read_name(node.func) if isinstance(node, ast.Call) else None
    if name is None or not isinstance(node, ast.Call):
        return None
    named = {word.arg: word.value for word in node.keywords if word.arg is not None}
    if node.args or len(named) < len(node.keywords):
        return PythonCall(name, None)
    try:
        return PythonCall(name, {word: _read_value(value) for word, value in named.items()})
    except (ValueError, TypeError, RecursionError):
        return PythonCall(name, None)


def _read_name(node: ast.expr) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


class _Constants(ast.NodeTransformer):
    """Puts Python's constants where a model wrote those of JSON."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_CONSTANTS[node.id]) if node.id in _CONSTANTS else node


def _read_value(node: ast.expr) -> JsonValue:
    """Return a literal as JSON. Raises ValueError or TypeError: any other expression, or one that JSON cannot express."""
    return parse(json.dumps(ast.literal_eval(_Constants().visit(node)), allow_nan=False))


_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


def build_tool_call(call_id: str | None, name: str, arguments: JsonValue) -> ToolCall:
    """Build a call from arguments as the model gave them: a JSON string or, from some providers, an object.

    None, "" and white space become `{}`: several providers send them for a call without arguments. Anything else that
    is not a JSON object leaves `arguments` None and sets the problem. Never raises.
    """
    if arguments is None:
        return ToolCall(call_id or None, name, {}, arguments)
    try:
        value = parse(arguments) if type(arguments) is str else arguments
    except UnreadableError as error:
        empty = type(arguments) is str and not arguments.strip()
        return ToolCall(call_id or None, name, {} if empty else None, arguments, None if empty else str(error))
    if type(value) is dict or isinstance(value, dict):
        return ToolCall(call_id or None, name, value, arguments)
    kind = "a number" if type(value) is int else name_type(value)
    return ToolCall(call_id or None, name, None, arguments, f"{kind} where an object is expected")


def read_result_content(raw: JsonValue) -> JsonValue:
    """Return what a tool returned. Text that spells a JSON object or array is parsed; other text stays text.

    A bare `123456` stays a string, since many ids look like numbers; so does text that is almost JSON. Parts that are
    all text are joined, one part per line; other parts (images, search results) are kept as given.
    """
    if not isinstance(raw, list):
        return read_structure(raw) if isinstance(raw, str) else raw
    if len(raw) == 1 and isinstance(raw[0], dict) and list(raw[0]) == ["json"]:
        return raw[0]["json"]  # Bedrock's block
    parts = [part for part in list_objects(raw) if read_type(part) in _TEXT_PARTS or list(part) == ["text"]]
    texts = [text for part in parts if isinstance(text := part.get("text"), str)]
    return read_structure("\n".join(texts)) if len(texts) == len(raw) else raw
