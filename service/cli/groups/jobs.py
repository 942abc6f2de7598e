"""Options and commands that batches and calibrations of a running service share. Bodies are imported when a command runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from service.cli.jobs import Opening

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
DeadlineOption = Annotated[
    float | None, typer.Option(metavar="N", help="Time in which it must be done, up to 8,760 hours.")
]
WebhookOption = Annotated[str | None, typer.Option(metavar="URL", help="Where its end is told.")]
IdempotencyOption = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="Submissions with one key are one. [default: made of the content]"),
]
StatusOption = Annotated[str | None, typer.Option(metavar="STATUS", help="Only those in this state.")]
LimitOption = Annotated[int, typer.Option(min=1, max=100, help="How many at most.")]
AfterOption = Annotated[str | None, typer.Option(metavar="ID", help="Only those older than this one.")]
ShownOption = Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="How it is written.")]
JobArgument = Annotated[str, typer.Argument(metavar="ID", help="The id that `submit` prints.")]
WaitOption = Annotated[bool, typer.Option("--wait", help="Go on until it has ended.")]
LOCAL = "http://127.0.0.1:8000"


def add_commands(  # noqa: PLR0913 (the help of each)
    app: typer.Typer,
    jobs: Callable[[str, str | None], Opening],
    *,
    listed: str,
    shown: str,
    cancelled: str,
    resumed: str,
    deleted: str,
) -> None:
    """Adds list, status, cancel, resume and delete, with the help of each. `jobs`: those of a server, given its URL and a key."""

    @app.command("list", help=listed)
    def list_command(
        status: StatusOption = None,
        limit: LimitOption = 20,
        after: AfterOption = None,
        output_format: ShownOption = "table",
        server: ServerOption = LOCAL,
        key: KeyOption = None,
    ) -> int:
        from service.cli.jobs import list_jobs  # noqa: PLC0415

        return list_jobs(jobs(server, key), limit=limit, after=after, status=status, output_format=output_format)

    @app.command("status", help=shown)
    def status_command(
        name: JobArgument, output_format: ShownOption = "table", server: ServerOption = LOCAL, key: KeyOption = None
    ) -> int:
        from service.cli.jobs import show_job  # noqa: PLC0415

        return show_job(jobs(server, key), name, output_format=output_format)

    @app.command("cancel", help=cancelled)
    def cancel_command(name: JobArgument, server: ServerOption = LOCAL, key: KeyOption = None) -> int:
        from service.cli.jobs import cancel  # noqa: PLC0415

        return cancel(jobs(server, key), name)

    @app.command("resume", help=resumed)
    def resume_command(
        name: JobArgument, budget_usd: MoreOption = None, server: ServerOption = LOCAL, key: KeyOption = None
    ) -> int:
        from service.cli.jobs import resume  # noqa: PLC0415

        return resume(jobs(server, key), name, budget_usd=budget_usd)

    @app.command("delete", help=deleted)
    def delete_command(name: JobArgument, server: ServerOption = LOCAL, key: KeyOption = None) -> int:
        from service.cli.jobs import delete  # noqa: PLC0415

        return delete(jobs(server, key), name)
