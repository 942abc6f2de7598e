"""Options that the commands for a running service share."""

from __future__ import annotations

from typing import Annotated

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
JobArgument = Annotated[str, typer.Argument(metavar="ID", help="The id that `submit` printed.")]
WatchOption = Annotated[bool, typer.Option("--watch", "--wait", help="Show the progress until it ends.")]
LOCAL_URL = "http://127.0.0.1:8000"
