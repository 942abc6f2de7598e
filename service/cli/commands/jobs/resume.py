"""`callgrade batch resume` and `callgrade calibrate resume`: one goes on that is paused."""

from __future__ import annotations

import typer

from service.cli.command import command
from service.cli.remote.options import LOCAL, JobArgument, KeyOption, MoreOption, MoreQuestionsOption, ServerOption


@command(
    80,
    batch="Go on with a paused batch.",
    calibrate="Go on with a paused calibration.",
)
def resume_command(
    context: typer.Context,
    name: JobArgument,
    budget_usd: MoreOption = None,
    max_questions: MoreQuestionsOption = None,
    server: ServerOption = LOCAL,
    key: KeyOption = None,
) -> int:
    """Of the kind of jobs that the group is about."""
    from service.cli.remote.jobs import resume
    from service.cli.remote.service import Service

    return resume(Service(server, key).jobs(context), name, budget_usd=budget_usd, max_questions=max_questions)
