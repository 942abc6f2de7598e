"""Files that come with callgrade, and the strict YAML that rubrics are written in.

The YAML is the subset people expect, and plain text stays text. `no`, `on`, `1:30`, `2024-05-01`, `007` and `1.` are
strings; numbers are written as in JSON; null, true and false follow the core schema of YAML 1.2 (10.3.2). Anchors,
aliases and tags are refused, so a small file can neither grow large nor name a Python class.
"""

from __future__ import annotations

import importlib.resources
import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
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
_LOADER: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def find_resource(*parts: str) -> Path:
    """Return a file or folder that comes with callgrade, e.g. `find_resource("rubrics", "four_step.yaml")`.

    The wheel has them in `service/_data`; in a checkout they are next to `service`. Raises FileNotFoundError if there
    is none, and for a part that is not a plain name: `..`, `a/b`, an absolute path.
    """
    package = Path(str(importlib.resources.files("service")))
    packaged = package / "_data"
    root = packaged if packaged.is_dir() else package.parent
    path = root.joinpath(*parts)
    if not (all(map(_is_plain, parts)) and path.exists()):
        raise FileNotFoundError(f"callgrade comes with no {'/'.join(parts)!r}")
    return path


def _is_plain(part: str) -> bool:
    return part not in {"", ".", ".."} and not re.search(r"[/\\:\0]", part)


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
    return _Document(text, source, _LOADER).read()


class _Document:
    """One pass over the parser's events. Without constructors and resolvers, it has none of their surprises."""

    def __init__(self, text: str, source: str, loader: type[yaml.SafeLoader]) -> None:
        self._text = text
        self._source = source
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=loader)  # pyright: ignore[reportUnknownMemberType] (untyped)
        self._depth = 0

    def read(self) -> JsonValue:
        if match := _FORBIDDEN.search(self._text):
            raise self._build_error(
                self._build_mark(match.start()), f"the character U+{ord(match[0]):04X} is not allowed"
            )
        try:
            return self._read_only_document()
        except yaml.MarkedYAMLError as error:
            raise self._build_error(error.problem_mark or error.context_mark, error.problem or "not YAML") from None
        except yaml.YAMLError as error:
            raise self._build_error(None, str(error)) from None

    def _read_only_document(self) -> JsonValue:
        next(self._events)
        if not isinstance(next(self._events), yaml.DocumentStartEvent):
            raise self._build_error(None, "the document is empty")
        value = self._read_value(next(self._events))
        next(self._events)
        after = next(self._events)
        if isinstance(after, yaml.DocumentStartEvent):
            raise self._build_error(after.start_mark, "a second document starts here")
        return value

    def _read_value(self, event: yaml.Event) -> JsonValue:
        self._refuse_extras(event)
        if isinstance(event, yaml.ScalarEvent):
            return self._read_scalar(event)
        if self._depth == MAX_DEPTH:
            raise self._build_error(event.start_mark, f"nested deeper than {MAX_DEPTH}", TooLargeError)
        self._depth += 1
        value = self._read_mapping() if isinstance(event, yaml.MappingStartEvent) else self._read_sequence()
        self._depth -= 1
        return value

    def _read_sequence(self) -> JsonValue:
        items: list[JsonValue] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._read_value(event))
        return items

    def _read_mapping(self) -> JsonValue:
        items: dict[str, JsonValue] = {}
        lines: dict[str, int] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._read_key(event)
            if key in items:
                raise self._build_error(event.start_mark, f"the key {key!r} is given twice, first in line {lines[key]}")
            lines[key] = event.start_mark.line + 1
            items[key] = self._read_value(next(self._events))
        return items

    def _read_key(self, event: yaml.Event) -> str:
        key = self._read_value(event) if isinstance(event, yaml.ScalarEvent | yaml.AliasEvent) else None
        if not isinstance(key, str):
            raise self._build_error(event.start_mark, "a key must be a string; put it in quotes")
        return key

    def _read_scalar(self, event: yaml.ScalarEvent) -> JsonValue:
        text = cast("str", event.value)
        if not event.implicit[0]:
            return self._read_string(event, text)
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _NOT_FINITE.fullmatch(text):
            raise self._build_error(event.start_mark, f"{text} is no JSON number; put it in quotes if it is text")
        if match := _NUMBER.fullmatch(text):
            return self._read_number(event, text, whole=match[1] is None and match[2] is None)
        return self._read_string(event, text)

    def _read_string(self, event: yaml.ScalarEvent, text: str) -> str:
        if match := _UNSAFE.search(text):
            raise self._build_error(event.start_mark, f"the character U+{ord(match[0]):04X} is not allowed")
        return text

    def _read_number(self, event: yaml.ScalarEvent, text: str, *, whole: bool) -> JsonValue:
        if whole and len(text.lstrip("-")) > MAX_DIGITS:
            raise self._build_error(event.start_mark, f"an integer of more than {MAX_DIGITS} digits", TooLargeError)
        value = int(text) if whole else float(text)
        if math.isinf(value):
            raise self._build_error(event.start_mark, "a number too large for a float")
        return value

    def _refuse_extras(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise self._build_error(
                event.start_mark, "anchors and aliases (& and *) are not allowed; write the value out"
            )
        if getattr(event, "tag", None) is not None:
            raise self._build_error(event.start_mark, "tags (!) are not allowed")

    def _build_mark(self, position: int) -> yaml.Mark:
        line = self._text.count("\n", 0, position)
        column = position - self._text.rfind("\n", 0, position) - 1
        return yaml.Mark(self._source, position, line, column, None, 0)

    def _build_error(self, mark: yaml.Mark | None, message: str, error: type[InputError] = RubricError) -> InputError:
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        return error.at(self._source, f"line {line}, column {column}: {message}")


@cache
def read_explanations() -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """Return `findings`, `words` of verdicts and `causes`: for each name its meaning, and what to do."""
    text = files("service").joinpath("explanations.yaml").read_text("utf-8")
    document = cast("Mapping[str, Mapping[str, list[str]]]", read_yaml(text, source="explanations.yaml"))
    return {kind: {name: (texts[0], texts[1]) for name, texts in entries.items()} for kind, entries in document.items()}


def explain(name: str) -> tuple[str, str] | None:
    """Return what a finding's code or a cause means, and what to do; None for one that is not ours."""
    known = {**read_explanations()["findings"], **read_explanations()["causes"]}
    longer = [texts for begin, texts in known.items() if begin.endswith("*") and name.startswith(begin[:-1])]
    return known.get(name) or (longer[0] if longer else None)
