"""The packaged explanations of finding codes and causes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import cast

from service.reading.packaged_files import read_yaml


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
