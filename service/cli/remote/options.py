"""Options that the commands on a running service share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

ServerOption = Annotated[
    str, typer.Option("--server", metavar="URL", envvar="CALLGRADE_SERVER", help="Where the service is.")
]
KeyOption = Annotated[
    str | None,
    typer.Option("--key", metavar="TEXT", envvar="CALLGRADE_API_KEY", help="A key of the service, if it asks."),
]
JudgeModelOption = Annotated[str | None, typer.Option(metavar="MODEL", help="The model that judges.")]
NameOption = Annotated[str | None, typer.Option(metavar="TEXT", help="For people to know it by.")]
TagOption = Annotated[list[str] | None, typer.Option(metavar="K=V", help="A label of it; repeatable.")]
BudgetOption = Annotated[
    float | None, typer.Option(metavar="X", min=0, help="The most that judges may cost; it pauses there.")
]
MoreOption = Annotated[float | None, typer.Option(metavar="X", min=0, help="Another budget for the whole of it.")]
QuestionsOption = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="The most requests to judges; it pauses there.")
]
MoreQuestionsOption = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Another limit of requests to judges for the whole of it.")
]
DeadlineOption = Annotated[
    float | None, typer.Option(metavar="N", help="Time in which it must be done, up to 8,760 hours.")
]
WebhookOption = Annotated[str | None, typer.Option(metavar="URL", help="Where its end is told.")]
IdempotencyOption = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Submissions with one key are one. [default: made of the content]"),
]
StatusOption = Annotated[str | None, typer.Option(metavar="STATUS", help="Only those in this state.")]
LimitOption = Annotated[int, typer.Option(metavar="N", min=1, max=100, help="How many at most.")]
AfterOption = Annotated[str | None, typer.Option(metavar="ID", help="Only those older than this one.")]
ShownOption = Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="How it is written.")]
JobArgument = Annotated[str, typer.Argument(metavar="ID", help="The id that `submit` prints.")]
WaitOption = Annotated[bool, typer.Option("--wait", help="Go on until it has ended.")]
WatchOption = Annotated[bool, typer.Option("--watch", "--wait", help="Show how it gets on until it has ended.")]
LinesOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write; it is there once it is whole. [default: standard output]",
    ),
]
OffsetOption = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="The position of the item to begin with, from 0.")
]
LOCAL = "http://127.0.0.1:8000"
