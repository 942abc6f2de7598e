"""Commands about rubrics. Bodies are imported when a command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

rubrics = typer.Typer(name="rubrics", help="List, show and check rubrics.", rich_markup_mode=None)


@rubrics.callback(invoke_without_command=True)
def _rubrics(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@rubrics.command("list")
def rubrics_list() -> int:
    """List the rubrics at hand: the bundled ones and your own."""
    from service.cli.rubrics import list_rubrics  # noqa: PLC0415

    return list_rubrics()


@rubrics.command("show")
def rubrics_show(
    rubric: Annotated[str, typer.Argument(metavar="ID", help="A rubric's id, id@version or file.")],
    output_format: Annotated[
        Literal["yaml", "json"], typer.Option("--format", "-f", help="How it is written.")
    ] = "yaml",
) -> int:
    """Print a rubric whole, as it scores, defaults and judges included."""
    from service.cli.rubrics import show_rubric  # noqa: PLC0415

    return show_rubric(rubric, output_format=output_format)


@rubrics.command("schema")
def rubrics_schema() -> int:
    """Print the JSON Schema of a rubric file, for editors."""
    from service.cli.rubrics import print_schema  # noqa: PLC0415

    return print_schema()


@rubrics.command("check")
def rubrics_check(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Rubrics, in YAML or JSON.")],
) -> int:
    """Check rubric files: every problem with its place, or ok with the rubric's hash."""
    from service.cli.rubrics import check_rubrics  # noqa: PLC0415

    return check_rubrics(files)
