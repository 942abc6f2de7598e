"""Options that several commands about calibration have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

LabelsOption = Annotated[Path, typer.Option(metavar="FILE", help="The labelled set: JSON Lines (also gzipped) or CSV.")]
PredictionsOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="What judges said of it, as JSON Lines. [default: what the labelled set holds]"),
]
MethodOption = Annotated[
    Literal["auto", "identity", "platt", "isotonic", "temperature", "venn_abers"],
    typer.Option(help="The map that is fitted; auto takes Platt below 300 labels, else isotonic."),
]
GuaranteeOption = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE", min=0.5, max=0.999, help="Promise that so much of what is accepted agrees with the labels."
    ),
]
CascadeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="JUDGE", help="In order: each judge is asked of what the one before leaves; with --guarantee."
    ),
]
SeedOption = Annotated[str | None, typer.Option(metavar="TEXT", help="What the groups are dealt out with.")]


def check_cascade(cascade: Sequence[str], guarantee: float | None) -> None:
    """A usage error for a cascade of one judge, or without a guarantee."""
    if cascade and (guarantee is None or len(cascade) < 2):
        raise typer.BadParameter("expected two judges or more, and --guarantee", param_hint="--cascade")
