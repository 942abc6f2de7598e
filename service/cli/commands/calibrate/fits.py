"""List the installed fits."""

from __future__ import annotations

from collections.abc import Sequence

from service.calibration.report.wording import show_number
from service.cli import options
from service.cli.exits import ExitCode
from service.cli.options import read_settings
from service.cli.screen import pluralize, print_json, print_table, say
from service.core.judging.fits.fit import Fit
from service.fits.files import AgingFits, describe_state, read_fits
from service.fits.manager import FitCheck, read_checks
from service.registry import Registry
from service.wiring import choose_route, list_rubric_folders

HEAD = ("judge", "criterion", "model", "made", "labels", "kappa", "promise", "state", "since then")


def main(output_format: options.TableOrJson = "table") -> int:
    """List the fits in CALLGRADE_HOME/fits, whether each applies, and what later checks found."""
    settings = read_settings()
    folder = settings.home / "fits"
    fits = tuple(AgingFits(read_fits([folder]), max_age_days=settings.fit_max_age_days))
    if not fits:
        say(f"no fit in {folder}; `callgrade calibrate install RUN` installs those of a run")
        return ExitCode.PASSED
    judges, checks = Registry(list_rubric_folders(settings)).judges, read_checks(folder, FitCheck)
    model, route = settings.judge_model, choose_route(settings) if settings.judge_model else None
    ordered = sorted(fits, key=lambda fit: (fit.judge, fit.criterion, fit.model))
    states = [describe_state(fit, judges, models=[model] if model else (), route=route) for fit in ordered]
    rows = [_build_fit_row(fit, state, checks.get(fit.id, ())) for fit, state in zip(ordered, states, strict=True)]
    if output_format == "json":
        print_json([dict(zip(HEAD, row, strict=True)) for row in rows])
    for row in rows if output_format == "table" else ():
        print_table(("", ""), list(zip(HEAD, row, strict=True))[1:], title=f"Installed: {row[0]}")
    return ExitCode.PASSED


def _build_fit_row(fit: Fit, state: str, checks: Sequence[FitCheck]) -> tuple[str, ...]:
    kappa, promise, since = fit.statistics.get("kappa"), "none", "not checked"
    if fit.guarantee is not None:
        promise = f"{fit.guarantee.share:.0%}" + ("" if fit.guarantee.accepts_any else ": no threshold")
    if fit.certificates:
        last = fit.certificates[-1]
        levels = f"{last.passes.floor:.0%} of passes, {last.failures.floor:.0%} of failures"
        promise += f"; certified: {levels}" if fit.certified else f"; not certified (asked: {levels})"
    if checks:
        last = checks[-1]
        outcome = f"drifted: {', '.join(last.drifted)}" if last.drifted else "no drift"
        count = pluralize(len(checks), "check")
        since = f"{last.day}: kappa {show_number(last.kappa)} on {last.items} items, {outcome} ({count})"
    made = "-" if fit.made is None else fit.made.isoformat()
    value = show_number(None if kappa is None else kappa.value)
    return fit.judge, fit.criterion, fit.model, made, str(fit.labels), value, promise, state, since
