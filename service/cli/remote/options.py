"""Options that the commands for a running service share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

ServerOption = Annotated[
    str, typer.Option("--server", metavar="URL", envvar="CALLGRADE_SERVER", help="URL of the service.")
]
KeyOption = Annotated[
    str | None,
    typer.Option("--key", metavar="TEXT", envvar="CALLGRADE_API_KEY", help="API key, if the service requires one."),
]
JudgeModelOption = Annotated[str | None, typer.Option(metavar="MODEL", help="Model to use as the judge.")]
NameOption = Annotated[str | None, typer.Option(metavar="TEXT", help="A name to recognize it by.")]
TagOption = Annotated[list[str] | None, typer.Option(metavar="K=V", help="A tag to attach; repeatable.")]
BudgetOption = Annotated[float | None, typer.Option(metavar="X", min=0, help="Pause when judges have cost this much.")]
NewBudgetOption = Annotated[float | None, typer.Option(metavar="X", min=0, help="New budget for the whole job.")]
QuestionsOption = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Pause after this many requests to judges.")
]
NewQuestionsOption = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="New limit on requests to judges for the whole job.")
]
DeadlineOption = Annotated[float | None, typer.Option(metavar="N", help="Hours until it expires, up to 8,760.")]
WebhookOption = Annotated[str | None, typer.Option(metavar="URL", help="URL to notify when it ends.")]
IdempotencyOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT", help="Submissions with the same key are one submission. [default: derived from the content]"
    ),
]
StatusOption = Annotated[str | None, typer.Option(metavar="STATUS", help="List only those with this status.")]
LimitOption = Annotated[int, typer.Option(metavar="N", min=1, max=100, help="Maximum number to list.")]
AfterOption = Annotated[str | None, typer.Option(metavar="ID", help="List only those older than this one.")]
JobFormatOption = Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="Output format.")]
JobArgument = Annotated[str, typer.Argument(metavar="ID", help="The id that `submit` printed.")]
WaitOption = Annotated[bool, typer.Option("--wait", help="Wait until it has ended.")]
WatchOption = Annotated[bool, typer.Option("--watch", "--wait", help="Show the progress until it ends.")]
LinesOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File to write to; it appears once it is complete. [default: standard output]",
    ),
]
OffsetOption = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Position of the first item to fetch, from 0.")
]
LOCAL_URL = "http://127.0.0.1:8000"
