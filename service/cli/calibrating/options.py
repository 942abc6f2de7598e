"""Options that several calibration commands share."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

LabelsOption = Annotated[Path, typer.Option(metavar="FILE", help="The labelled set: JSON Lines (also gzipped) or CSV.")]
PredictionsOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="The judges' predictions, as JSON Lines. [default: those in the labelled set]"),
]
MethodOption = Annotated[
    Literal["auto", "identity", "platt", "isotonic"],
    typer.Option(help="The map to fit; auto means Platt below 300 labels, else isotonic."),
]
GuaranteeOption = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        min=0.5,
        max=0.999,
        help="Guarantee that this share of accepted verdicts agrees with the labels.",
    ),
]
CascadeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="JUDGE",
        help="A judge of a cascade; repeatable, in order. Each is asked what the one before leaves open. Needs --guarantee.",
    ),
]
SeedOption = Annotated[str | None, typer.Option(metavar="TEXT", help="Seed for splitting the groups.")]


def check_cascade(cascade: Sequence[str], guarantee: float | None) -> None:
    """Raise a usage error for a cascade of one judge, or one without a guarantee."""
    if cascade and (guarantee is None or len(cascade) < 2):
        raise typer.BadParameter("expected two judges or more, and --guarantee", param_hint="--cascade")
