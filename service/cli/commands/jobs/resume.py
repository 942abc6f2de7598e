"""`callgrade batch resume` and `callgrade calibrate resume`: resume a paused job."""

from __future__ import annotations

import typer

from service.cli.command import command
from service.cli.remote.options import (
    LOCAL_URL,
    JobArgument,
    KeyOption,
    NewBudgetOption,
    NewQuestionsOption,
    ServerOption,
)


@command(
    80,
    batch="Resume a paused batch.",
    calibrate="Resume a paused calibration.",
)
def resume_command(
    context: typer.Context,
    name: JobArgument,
    budget_usd: NewBudgetOption = None,
    max_questions: NewQuestionsOption = None,
    server: ServerOption = LOCAL_URL,
    key: KeyOption = None,
) -> int:
    """Resume a batch or a calibration, depending on the command's group."""
    from service.cli.remote.jobs import resume
    from service.cli.remote.service import Service

    return resume(Service(server, key).jobs(context), name, budget_usd=budget_usd, max_questions=max_questions)
