"""Text that is XML from its first character to its last."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.parsers import expat

from pydantic import JsonValue

from service.core.results.form import Form, Stretch

MAX_DEPTH = 64
MAX_ELEMENTS = 20_000
_ROOT = re.compile(r"<(?!/|!|\?|html|HTML)[A-Za-z_]")
_DECLARATION = re.compile(r"<\?xml[^?<>]{0,200}\?>")


class _RefusedError(Exception):
    """The XML has something that this reader refuses."""


def find(text: str) -> Iterator[Stretch]:
    """Read the whole text as an object: elements by name, several of one name as an array, attributes as members.

    A document type is refused, so that there are no entities to expand and nothing external is ever opened.
    """
    bare = text.strip()
    start = _DECLARATION.match(bare)
    inner = bare[start.end() :].lstrip() if start else bare
    if not inner.endswith(">") or "<!DOCTYPE" in inner or not _ROOT.match(inner):
        return
    try:
        value = _read(inner)
    except (_RefusedError, expat.ExpatError, UnicodeError):
        return
    if isinstance(value, dict) and value:
        yield Stretch(0, len(text), value)


def _read(text: str) -> JsonValue:
    reader = _Reader()
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.add_text
    parser.StartDoctypeDeclHandler = reader.refuse
    parser.Parse(f"<all>{text}</all>".encode(), True)
    return reader.root


class _Element:
    def __init__(self, members: dict[str, str]) -> None:
        self.members: dict[str, list[JsonValue]] = {name: [value] for name, value in members.items()}
        self.texts: list[str] = []

    def build(self) -> JsonValue:
        """Build the element's value: its text if it has nothing else, else an object."""
        text = "".join(self.texts).strip()
        if not self.members:
            return text
        found: dict[str, JsonValue] = {
            name: values if values[1:] else values[0] for name, values in self.members.items()
        }
        return {**found, "text": text} if text and "text" not in found else found


class _Reader:
    def __init__(self) -> None:
        self.root: JsonValue = None
        self._open: list[_Element] = []
        self._count = 0

    def start(self, _: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._open) > MAX_DEPTH or self._count > MAX_ELEMENTS:
            raise _RefusedError
        self._open.append(_Element(attributes))

    def end(self, name: str) -> None:
        value = self._open.pop().build()
        if self._open:
            self._open[-1].members.setdefault(name, []).append(value)
        else:
            self.root = value

    def add_text(self, text: str) -> None:
        self._open[-1].texts.append(text)

    def refuse(self, *_: object) -> None:
        raise _RefusedError


FORM = Form("xml", exact=False, rank=60, find=find)
