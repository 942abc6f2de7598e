"""The labels that a judge may give, with their values."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from service.core.judging.fits.maps import Share
from service.core.models.kinds import FrozenModel


class Label(FrozenModel):
    """One label that a judge may give."""

    value: Share
    """The value of the label, in [0, 1]."""
    means: str = ""
    """When to give this label: the anchor of the scale."""


def _read_label(given: object) -> object:
    return {"value": given} if isinstance(given, int | float) and not isinstance(given, bool) else given


def _name_labels(given: object) -> object:
    """Turn numeric labels into strings: YAML reads labels like 0 to 5 as numbers."""
    if not isinstance(given, dict):
        return given
    return {str(key) if type(key) is int else key: value for key, value in given.items()}  # pyright: ignore


def _sort_best_first(labels: dict[str, Label]) -> dict[str, Label]:
    """Sort labels best first, as a model sees them; their order in the file means nothing."""
    return dict(sorted(labels.items(), key=lambda item: (-item[1].value, item[0])))


Scale = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=64)], Annotated[Label, BeforeValidator(_read_label)]],
    BeforeValidator(_name_labels),
    Field(min_length=2, max_length=20),
    AfterValidator(_sort_best_first),
]
