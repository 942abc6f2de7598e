"""`callgrade calibrate fits`: list the installed fits, whether each applies, and what later checks found."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import pluralize, say

if TYPE_CHECKING:
    from service.core.judging.fits import Fit
    from service.fits.checks import FitCheck

HEAD = ("judge", "criterion", "model", "made", "labels", "kappa", "promise", "state", "since then")


@command(5)
def calibrate_fits(
    output_format: Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="Output format.")] = "table",
) -> int:
    """List the fits in CALLGRADE_HOME/fits, whether each applies, and what later checks found."""
    from service.fits.checks import FitCheck, read_checks
    from service.fits.files import AgingFits, describe_state, read_fits
    from service.registry import Registry
    from service.wiring import choose_route, list_rubric_folders

    settings = read_settings()
    folder = settings.home / "fits"
    fits = tuple(AgingFits(read_fits([folder]), max_age_days=settings.fit_max_age_days))
    if not fits:
        say(f"no fit in {folder}; `callgrade calibrate install RUN` installs those of a run")
        return ExitCode.PASSED
    judges, checks = Registry(list_rubric_folders(settings)).judges, read_checks(folder, FitCheck)
    ordered = sorted(fits, key=lambda fit: (fit.judge, fit.criterion, fit.model))
    route = choose_route(settings) if settings.judge_model else None
    rows = [_build_row(fit, describe_state(fit, judges, route=route), checks.get(fit.id, ())) for fit in ordered]
    _show(rows, output_format)
    return ExitCode.PASSED


def _show(rows: Sequence[tuple[str, ...]], output_format: Literal["table", "json"]) -> None:
    from service.calibration.results import render_json
    from service.cli.rendering.console import build_reading_console
    from service.cli.rendering.documents import show
    from service.reporting.document import Section, Table

    if output_format == "json":
        sys.stdout.write(render_json([dict(zip(HEAD, row, strict=True)) for row in rows]).decode())
    else:
        show(build_reading_console(), [Section("Fits in place", (Table(HEAD, tuple(rows)),))])


def _build_row(fit: Fit, state: str, checks: Sequence[FitCheck]) -> tuple[str, ...]:
    kappa = fit.statistics.get("kappa")
    value = "-" if kappa is None or kappa.value is None else f"{kappa.value:.3f}"
    made = "-" if fit.made is None else fit.made.isoformat()
    origin = (fit.judge, fit.criterion, fit.model, made, str(fit.labels), value)
    return (*origin, _describe_promise(fit), state, _describe_checks(checks))


def _describe_promise(fit: Fit) -> str:
    if fit.guarantee is None:
        return "none"
    return f"{fit.guarantee.share:.0%}" if fit.guarantee.accepts_any else f"{fit.guarantee.share:.0%}: no threshold"


def _describe_checks(checks: Sequence[FitCheck]) -> str:
    if not checks:
        return "not checked"
    last = checks[-1]
    value = "-" if last.kappa is None else f"{last.kappa:.3f}"
    outcome = f"drifted: {', '.join(last.drifted)}" if last.drifted else "held"
    return f"{last.day}: kappa {value} on {last.items} items, {outcome} ({pluralize(len(checks), 'check')})"
