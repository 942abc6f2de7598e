"""Options that several commands about calibration have."""

from __future__ import annotations

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
SeedOption = Annotated[str | None, typer.Option(help="What the groups are dealt out with.")]
