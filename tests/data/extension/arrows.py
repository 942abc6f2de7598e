"""Texts such as `n -> 4; m -> 5`."""

from __future__ import annotations

from collections.abc import Iterator

from service.core.results.form import Form, Stretch


def find(text: str) -> Iterator[Stretch]:
    """The whole text, if every part of it has an arrow."""
    pairs = [part.partition(" -> ") for part in text.split("; ")]
    if all(arrow for _, arrow, _ in pairs):
        yield Stretch(0, len(text), {name: value for name, _, value in pairs})


FORM = Form("arrows", exact=True, rank=90, find=find)
