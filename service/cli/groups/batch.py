"""Commands about the batches of a running service. Bodies are imported when a command runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.groups.jobs import (
    LOCAL,
    BudgetOption,
    DeadlineOption,
    IdempotencyOption,
    JobArgument,
    JudgeModelOption,
    KeyOption,
    NameOption,
    ServerOption,
    TagOption,
    WaitOption,
    WebhookOption,
    add_commands,
)
from service.cli.options import FormatOption

if TYPE_CHECKING:
    from service.cli.jobs import Opening

batch = typer.Typer(
    name="batch", help="Submit batches to a running service, watch them and fetch their results.", rich_markup_mode=None
)


@batch.callback(invoke_without_command=True)
def _batch(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


RubricOption = Annotated[
    str | None, typer.Option("--rubric", "-r", metavar="ID|FILE", help="Rubric for the records that name none.")
]
JudgesOption = Annotated[
    Literal["off", "cached", "live", "fresh"] | None,
    typer.Option(help="How judges are asked, for the records that do not say."),
]
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


@batch.command("submit")
def batch_submit(  # noqa: PLR0913, PLR0917 (one for each option)
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="JSON or JSON Lines, also gzipped; - is standard input.")
    ],
    rubric: RubricOption = None,
    judges: JudgesOption = None,
    judge_model: JudgeModelOption = None,
    input_format: FormatOption = "auto",
    name: NameOption = None,
    tag: TagOption = None,
    budget_usd: BudgetOption = None,
    deadline_hours: DeadlineOption = None,
    webhook: WebhookOption = None,
    skip_invalid: Annotated[  # noqa: FBT002 (typer passes it by name)
        bool, typer.Option("--skip-invalid", help="Leave records out that cannot be scored; else one refuses all.")
    ] = False,
    dry_run: Annotated[  # noqa: FBT002 (likewise)
        bool, typer.Option("--dry-run", help="Only say what judges would be asked, and for how much.")
    ] = False,
    idempotency_key: IdempotencyOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="Show how it gets on, as `batch watch`.")] = False,  # noqa: FBT002
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Submit traces as a batch, and print its id alone on standard output.

    Records are those of `callgrade score`, and may have a "custom_id" each, by which results name them.
    """
    from service.cli.batch_service import Service  # noqa: PLC0415
    from service.cli.batch_submit import Submission, options_of, submit  # noqa: PLC0415

    options = options_of(
        name=name,
        judges=judges,
        judge_model=judge_model,
        tags=tag or (),
        budget_usd=budget_usd,
        deadline_hours=deadline_hours,
        webhook=webhook,
        skip_invalid=skip_invalid or None,
        dry_run=dry_run or None,
    )
    submission = Submission(file, options, rubric, input_format, idempotency_key)
    return submit(Service(server, key), submission, watch=watch)


@batch.command("watch")
def batch_watch(batch_id: JobArgument, server: ServerOption = LOCAL, key: KeyOption = None) -> int:
    """Show how a batch gets on until it has ended. Interrupting this leaves the batch alone.

    Exit code 0 where it completed, whatever the verdicts (`callgrade summarize` makes a gate of results); 2 where it failed,
    expired, was cancelled, or waits for a larger budget.
    """
    from service.cli.batch import watch  # noqa: PLC0415
    from service.cli.batch_service import Service  # noqa: PLC0415

    return watch(Service(server, key), batch_id)


@batch.command("results")
def batch_results(
    batch_id: JobArgument,
    output: LinesOption = None,
    offset: OffsetOption = None,
    wait: WaitOption = False,  # noqa: FBT002 (typer passes it by name)
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Fetch the reports of a batch as JSON Lines, in the order of its items, as far as it is.

    With --output the exit code is 2 while not all are there; the same command goes on where it stopped.
    """
    from service.cli.batch import fetch  # noqa: PLC0415
    from service.cli.batch_service import Service  # noqa: PLC0415

    return fetch(Service(server, key), batch_id, "results", output=output, offset=offset, wait=wait)


@batch.command("errors")
def batch_errors(
    batch_id: JobArgument,
    output: LinesOption = None,
    offset: OffsetOption = None,
    wait: WaitOption = False,  # noqa: FBT002 (typer passes it by name)
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Fetch why items have no report, as `batch results` fetches reports. Every item is in one of the two."""
    from service.cli.batch import fetch  # noqa: PLC0415
    from service.cli.batch_service import Service  # noqa: PLC0415

    return fetch(Service(server, key), batch_id, "errors", output=output, offset=offset, wait=wait)


def _batches(server: str, key: str | None) -> Opening:
    from service.cli.batch_service import Service  # noqa: PLC0415

    return Service(server, key).batches()


add_commands(
    batch,
    _batches,
    listed="List batches, newest first.",
    shown="Show how far a batch is.",
    cancelled="Cancel a batch: items under way are finished, the others are never run.",
    resumed="Go on with a paused batch.",
    deleted="Delete a batch that has ended, with its items and results.",
)
