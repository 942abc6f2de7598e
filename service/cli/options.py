"""What commands share: how they are declared, the options of several of them, and the settings that each starts from.

An option is declared once, here; what a command says otherwise is in its own file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.screen import warn

if TYPE_CHECKING:
    from service.settings import Settings


def build_group(name: str, text: str) -> typer.Typer:
    """Build a group of commands, which shows its help if it is called without one."""
    group = typer.Typer(name=name, help=text)

    @group.callback(invoke_without_command=True)
    def show_help(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    return group


def read_settings() -> Settings:
    """Read the settings and warn about unknown names, which are most likely misspelt. SettingsError for one that is invalid."""
    from service.settings import Settings  # noqa: PLC0415 (every command imports this module)

    settings = Settings.from_env(os.environ)
    for name in settings.unknown:
        warn(f"{name} is not a callgrade setting")
    return settings


FORMAT = typer.Option("--format", "-f", help="Output format.")
TableOption = Annotated[Literal["table", "json"], FORMAT]
LogLevelOption = Annotated[
    Literal["debug", "info", "warning", "error", "critical"] | None,
    typer.Option(help="Log this level and above. [default: CALLGRADE_LOG_LEVEL or info]"),
]

# Traces and reports.


def _check_format(name: str) -> str:
    if name != "auto":
        from service.intake import FORMATS  # noqa: PLC0415 (slow to import)

        if name not in FORMATS:
            raise typer.BadParameter(f"{name!r} is not one of auto, {', '.join(FORMATS)}")
    return name


FilesArgument = Annotated[
    list[Path], typer.Argument(metavar="FILE...", help="JSON or JSON Lines, also gzipped; - is standard input.")
]
ReportsArgument = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", help="Reports as JSON or JSON Lines, also gzipped; - is standard input."),
]
RubricOption = Annotated[
    str | None,
    typer.Option(
        "--rubric", "-r", metavar="ID|FILE", help="Rubric for all records, overriding their own. [default: four_step]"
    ),
]
ExpectedOption = Annotated[
    Path | None,
    typer.Option(
        "--expected", "-e", metavar="FILE", help="Expectation for all records, overriding their own; JSON or YAML."
    ),
]
FormatOption = Annotated[
    str,
    typer.Option(
        "--input-format",
        "-i",
        metavar="FORMAT",
        callback=_check_format,
        help="Format of traces that do not name one (callgrade formats lists them); auto guesses it and says so.",
    ),
]
PluginOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin", metavar="FILE", help="Python file with checks of your own, added to every rubric; repeatable."
    ),
]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write to. [default: standard output]")
]
AllowUndecidedOption = Annotated[
    bool, typer.Option("--allow-undecided", help="Forgive undecided verdicts, unless a fault is the reason.")
]

# Calibration.

LabelsOption = Annotated[Path, typer.Option(metavar="FILE", help="The labelled set: JSON Lines (also gzipped) or CSV.")]
PredictionsOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="The judges' predictions, as JSON Lines. [default: those in the labelled set]"),
]
RunArgument = Annotated[Path, typer.Argument(metavar="RUN", help="The report.json of a run, or its folder.")]
JudgedRubricOption = Annotated[str, typer.Option("--rubric", "-r", metavar="ID", help="Rubric whose judges are asked.")]
AskOption = Annotated[
    Literal["cached", "live", "fresh"], typer.Option(help="How to ask judges; fresh ignores cached answers.")
]
DrawsOption = Annotated[
    int, typer.Option(metavar="N", min=0, max=100_000, help="Bootstrap draws for each interval; 0 for no intervals.")
]
MethodOption = Annotated[
    Literal["auto", "identity", "platt", "isotonic", "temperature", "venn_abers"],
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


# A running service.

LOCAL_URL = "http://127.0.0.1:8000"
ServerOption = Annotated[
    str, typer.Option("--server", metavar="URL", envvar="CALLGRADE_SERVER", help="URL of the service.")
]
KeyOption = Annotated[
    str | None,
    typer.Option("--key", metavar="TEXT", envvar="CALLGRADE_API_KEY", help="API key, if the service requires one."),
]
JobArgument = Annotated[str, typer.Argument(metavar="ID", help="The id that `submit` printed.")]
JudgeModelOption = Annotated[str | None, typer.Option(metavar="MODEL", help="Model to use as the judge.")]
NameOption = Annotated[str | None, typer.Option(metavar="TEXT", help="A name to recognize it by.")]
TagOption = Annotated[list[str] | None, typer.Option(metavar="K=V", help="A tag to attach; repeatable.")]
BudgetOption = Annotated[float | None, typer.Option(metavar="X", min=0, help="Pause when judges have cost this much.")]
QuestionsOption = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Pause after this many requests to judges.")
]
DeadlineOption = Annotated[float | None, typer.Option(metavar="N", help="Hours until it expires, up to 8,760.")]
WebhookOption = Annotated[str | None, typer.Option(metavar="URL", help="URL to notify when it ends.")]
IdempotencyOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT", help="Submissions with the same key are one submission. [default: derived from the content]"
    ),
]
WatchOption = Annotated[bool, typer.Option("--watch", "--wait", help="Show the progress until it ends.")]
