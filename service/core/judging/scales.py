"""The labels that a judge may give, and what each is worth."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from service.core.judging.fits.maps import Share
from service.core.models.kinds import FrozenModel


class Label(FrozenModel):
    """One answer a judge may give."""

    value: Share
    """What it is worth."""
    means: str = ""
    """When to give it: the anchor of the scale."""


def _read_label(given: object) -> object:
    return {"value": given} if isinstance(given, int | float) and not isinstance(given, bool) else given


def _name_labels(given: object) -> object:
    """YAML reads the labels 0 to 5 as numbers."""
    if not isinstance(given, dict):
        return given
    return {str(key) if type(key) is int else key: value for key, value in given.items()}  # pyright: ignore


def _sort_best_first(labels: dict[str, Label]) -> dict[str, Label]:
    """The order in which labels are put to a model; the order in the file means nothing."""
    return dict(sorted(labels.items(), key=lambda item: (-item[1].value, item[0])))


Scale = Annotated[
    dict[Annotated[str, Field(min_length=1, max_length=64)], Annotated[Label, BeforeValidator(_read_label)]],
    BeforeValidator(_name_labels),
    Field(min_length=2, max_length=20),
    AfterValidator(_sort_best_first),
]
