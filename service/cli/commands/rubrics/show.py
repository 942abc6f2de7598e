"""`callgrade rubrics show`: print a complete rubric."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode


@command(20)
def show_rubric(
    rubric: Annotated[str, typer.Argument(metavar="ID", help="The rubric's id, id@version or file.")],
    output_format: Annotated[Literal["yaml", "json"], typer.Option("--format", "-f", help="Output format.")] = "yaml",
) -> int:
    """Print a complete rubric as it scores, including defaults and judges."""
    from service.cli.inputs import find_rubric
    from service.cli.rubric_yaml import render_yaml
    from service.wiring import build_engine

    full_rubric = find_rubric(build_engine(read_settings()).registry, rubric)
    text = f"{full_rubric.model_dump_json()}\n" if output_format == "json" else render_yaml(full_rubric)
    sys.stdout.write(text)
    return ExitCode.PASSED
