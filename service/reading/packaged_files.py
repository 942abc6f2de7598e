"""Files that come with callgrade, and the strict YAML that rubrics are written in.

The YAML is the subset people expect, and plain text stays text. `no`, `on`, `1:30`, `2024-05-01`, `007` and `1.` are
strings; numbers are written as in JSON; null, true and false follow the core schema of YAML 1.2 (10.3.2). Anchors,
aliases and tags are refused, so a small file can neither grow large nor name a Python class.
"""

from __future__ import annotations

import importlib.resources
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import cast

import yaml
from pydantic import JsonValue

from service.core.json.parsing import UnreadableError, parse
from service.errors import InputError, RubricError, TooLargeError

MAX_BYTES = 64 * 1024
MAX_DEPTH = 64
MAX_DIGITS = 64

_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?(?:\.(?:inf|Inf|INF|nan|NaN|NAN)|Infinity|NaN)")
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNSAFE = re.compile("[\0\ud800-\udfff]")
_LOADER: type[yaml.BaseLoader] = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def find_resource(*parts: str) -> Path:
    """Return a file or folder that comes with callgrade, e.g. `find_resource("rubrics", "four_step.yaml")`.

    The wheel has them in `service/_data`; in a checkout they are next to `service`. Raises FileNotFoundError if there
    is none, and for a part that is not a plain name: `..`, `a/b`, an absolute path.
    """
    package = Path(str(importlib.resources.files("service")))
    packaged = package / "_data"
    root = packaged if packaged.is_dir() else package.parent
    path = root.joinpath(*parts)
    plain = not any(part in {"", ".", ".."} or re.search(r"[/\\:\0]", part) for part in parts)
    if not (plain and path.exists()):
        raise FileNotFoundError(f"callgrade comes with no {'/'.join(parts)!r}")
    return path


def read_yaml(text: str, *, source: str) -> JsonValue:
    """Return the value of a YAML (or JSON) document. `source` names it in errors.

    Raises RubricError with "line L, column C" (both from 1) for bad syntax, a duplicate or non-string key, an anchor,
    alias or tag, infinity or NaN, a character YAML does not allow, an empty document or a second one; TooLargeError
    above 64 KiB, 64 levels or 64 digits.
    """
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise TooLargeError.at(source, f"more than {MAX_BYTES // 1024} KiB")
    if text.lstrip()[:1] in {"{", "["}:
        # YAML parsers refuse some JSON: tabs before a token, surrogate pairs. The code below locates other errors.
        try:
            return parse(text)
        except UnreadableError:
            pass
    fail = partial(_build_error, source)
    if match := _FORBIDDEN.search(text):
        at = match.start()
        mark = yaml.Mark(source, at, text.count("\n", 0, at), at - text.rfind("\n", 0, at) - 1, None, 0)
        raise fail(mark, f"the character U+{ord(match[0]):04X} is not allowed")
    try:
        _check_events(text, fail)
        root = cast("yaml.Node", yaml.compose(text, Loader=_LOADER))  # pyright: ignore[reportUnknownMemberType] (untyped)
    except yaml.MarkedYAMLError as error:
        raise fail(error.problem_mark or error.context_mark, error.problem or "not YAML") from None
    except yaml.YAMLError as error:
        raise fail(None, str(error)) from None
    return _build_value(root, fail)


Fail = Callable[..., InputError]
"""Builds the error at a mark: what is wrong, and the class of the error."""


def _build_error(
    source: str, mark: yaml.Mark | None, message: str, error: type[InputError] = RubricError
) -> InputError:
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return error.at(source, f"line {line}, column {column}: {message}")


def _check_events(text: str, fail: Fail) -> None:
    """Refuse what a document may not hold before it is built, so that building it is safe."""
    depth = documents = 0
    for event in cast("Iterator[yaml.Event]", yaml.parse(text, Loader=_LOADER)):  # pyright: ignore[reportUnknownMemberType] (untyped)
        at = event.start_mark
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if documents > 1:
            raise fail(at, "a second document starts here")
        if depth > MAX_DEPTH:
            raise fail(at, f"nested deeper than {MAX_DEPTH}", TooLargeError)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise fail(at, "anchors and aliases (& and *) are not allowed; write the value out")
        if getattr(event, "tag", None) is not None:
            raise fail(at, "tags (!) are not allowed")
    if not documents:
        raise fail(None, "the document is empty")


def _build_value(node: yaml.Node, fail: Fail) -> JsonValue:
    if isinstance(node, yaml.ScalarNode):
        return _read_scalar(node, fail)
    if isinstance(node, yaml.SequenceNode):
        return [_build_value(item, fail) for item in node.value]
    items: dict[str, JsonValue] = {}
    lines: dict[str, int] = {}
    for name, inner in node.value:
        key, mark = (_read_scalar(name, fail) if isinstance(name, yaml.ScalarNode) else None), name.start_mark
        if not isinstance(key, str):
            raise fail(mark, "a key must be a string; put it in quotes")
        if key in items:
            raise fail(mark, f"the key {key!r} is given twice, first in line {lines[key]}")
        lines[key] = mark.line + 1
        items[key] = _build_value(inner, fail)
    return items


def _read_scalar(node: yaml.ScalarNode, fail: Fail) -> JsonValue:
    text, at, plain = node.value, node.start_mark, not node.style
    if plain and text in _CONSTANTS:
        return _CONSTANTS[text]
    if plain and _NOT_FINITE.fullmatch(text):
        raise fail(at, f"{text} is no JSON number; put it in quotes if it is text")
    match = _NUMBER.fullmatch(text) if plain else None
    if match is not None and match[1] is None and match[2] is None:
        if len(text.lstrip("-")) > MAX_DIGITS:
            raise fail(at, f"an integer of more than {MAX_DIGITS} digits", TooLargeError)
        return int(text)
    if match is not None and math.isinf(float(text)):
        raise fail(at, "a number too large for a float")
    if unsafe := _UNSAFE.search(text):
        raise fail(at, f"the character U+{ord(unsafe[0]):04X} is not allowed")
    return text if match is None else float(text)


@cache
def read_explanations() -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """Return `findings`, `words` of verdicts, `causes` and `exit_codes`: for each name its meaning, and what to do."""
    text = files("service").joinpath("explanations.yaml").read_text("utf-8")
    document = cast("Mapping[str, Mapping[str, list[str]]]", read_yaml(text, source="explanations.yaml"))
    return {kind: {name: (texts[0], texts[1]) for name, texts in entries.items()} for kind, entries in document.items()}


def explain(name: str) -> tuple[str, str] | None:
    """Return what a finding's code or a cause means, and what to do; None for one that is not ours."""
    known = {**read_explanations()["findings"], **read_explanations()["causes"]}
    longer = [texts for begin, texts in known.items() if begin.endswith("*") and name.startswith(begin[:-1])]
    return known.get(name) or (longer[0] if longer else None)
