"""The fits of a run: install them, list what is installed, and check that judges still agree with the labels as they did."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import typer

from service.calibration.drift import CHECK_VERSION, CheckReport, JudgeDrift, check_judge, draw_sample
from service.calibration.labels import LabelledItem, LabelledSet
from service.calibration.report.wording import show_number
from service.calibration.report_predictions import UnansweredItem, find_check
from service.calibration.results import CalibrationReport, HeldOutItem, JudgeReport, render_report_json
from service.calibration.splits import SEED
from service.cli.calibrating import build_judging_engine, collect_answers, read_labelled, read_run
from service.cli.commands.keys import find_user
from service.cli.exits import ExitCode
from service.cli.options import read_settings
from service.cli.screen import pluralize, print_document, print_table, say, warn
from service.cli.sections import build_section
from service.core.judging.fits.fit import Fit
from service.core.judging.notes import is_same_model
from service.core.rubric import Rubric
from service.errors import InputError, SettingsError
from service.fits.files import IN_USE, AgingFits, build_file_name, describe_state, get_today, read_fits, refuse_useless
from service.fits.manager import FitCheck, ItemizedCheck, append_checks, read_checks
from service.fits.own_files import note_own_files
from service.labelling.predictions import AskSettings
from service.registry import Registry
from service.reporting.document import Section
from service.reporting.numbers import render_number
from service.settings import Settings
from service.wiring import build_engine, choose_route, list_rubric_folders, prepare_database


def find_folder(run: Path) -> Path:
    """Return the folder of a run from that or from its report."""
    return run if run.is_dir() else run.parent


# Installing.


def install_fits(run: Path) -> ExitCode:
    """Copy the fits of a run into CALLGRADE_HOME/fits; each replaces an earlier one for the same judge and criterion.

    SettingsError for a file that is not a fit, InputError where every fit is refused; a usage error if there is no fit or the
    folder cannot be written.
    """
    source = find_folder(run) / "fits"
    found = read_fits([source])
    if not found:
        raise typer.BadParameter(f"{source} holds no fit; `callgrade calibrate run` writes them", param_hint="RUN")
    fits, refused = refuse_useless(found)
    settings = read_settings()
    folder = settings.home / "fits"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for fit in fits:  # written whole or not at all, because a service may be reading the folder
            draft = folder / f"{build_file_name(fit)}.new"
            draft.write_bytes(render_report_json(fit))
            draft.replace(folder / build_file_name(fit))
    except OSError as error:
        raise typer.BadParameter(f"{folder}: {error.strerror}", param_hint="CALLGRADE_HOME") from None
    _record_audit(settings)
    engine = build_engine(settings)
    for fit in fits:
        state = describe_state(fit, engine.registry.judges)
        say(f"{fit.id} for {fit.model}: {_describe_use(fit) if state == IN_USE else f'decides nothing: {state}'}")
    say(f"{pluralize(len(fits), 'fit')} in {folder}; restart a running service to use them")
    for sentence in (*refused, *engine.list_warnings()):
        warn(sentence)
    return ExitCode.PASSED


def _describe_use(fit: Fit) -> str:
    """Describe what a fit does with the judge's answers: raw values with a guarantee, else calibrated ones."""
    terms = fit.guarantee
    if terms is None:
        low, high = fit.review_band or (0.0, 0.0)
        band = f", from {render_number(low)} to below {render_number(high)} a human decides" if fit.review_band else ""
        return f"passes from {render_number(fit.threshold)}{band}"
    if not terms.accepts_any:
        return f"accepts no verdict, because no threshold promises {terms.share:.0%}: a human decides everything"
    passes = "" if terms.passes_from is None else f"passes from raw {render_number(terms.passes_from)}, "
    fails = "" if terms.fails_to is None else f"fails to raw {render_number(terms.fails_to)}, "
    return f"{passes}{fails}so that {terms.share:.0%} agree; a human decides the rest"


def _record_audit(settings: Settings) -> None:
    """Record the installation in the audit log if a store exists; do not create one for it."""
    if not (settings.database_url or (settings.home / "store.db").is_file()):
        return
    try:
        note_own_files(settings, prepare_database(settings), by=find_user())
    except SettingsError as error:
        warn(f"the installation is not in the audit log: {error}")


HEAD = ("judge", "criterion", "model", "made", "labels", "kappa", "promise", "state", "since then")


def list_fits(output_format: Literal["table", "json"]) -> ExitCode:
    """Print the installed fits, whether each applies, and what later checks found."""
    settings = read_settings()
    folder = settings.home / "fits"
    fits = tuple(AgingFits(read_fits([folder]), max_age_days=settings.fit_max_age_days))
    if not fits:
        say(f"no fit in {folder}; `callgrade calibrate install RUN` installs those of a run")
        return ExitCode.PASSED
    judges, checks = Registry(list_rubric_folders(settings)).judges, read_checks(folder, FitCheck)
    route = choose_route(settings) if settings.judge_model else None
    ordered = sorted(fits, key=lambda fit: (fit.judge, fit.criterion, fit.model))
    rows = [_build_fit_row(fit, describe_state(fit, judges, route=route), checks.get(fit.id, ())) for fit in ordered]
    print_table(HEAD, rows, title="Installed calibrations", form=output_format)
    return ExitCode.PASSED


def _build_fit_row(fit: Fit, state: str, checks: Sequence[FitCheck]) -> tuple[str, ...]:
    kappa, promise, since = fit.statistics.get("kappa"), "none", "not checked"
    if fit.guarantee is not None:
        promise = f"{fit.guarantee.share:.0%}" + ("" if fit.guarantee.accepts_any else ": no threshold")
    if fit.certificates:
        last = fit.certificates[-1]
        levels = f"{last.passes.floor:.0%} of passes, {last.failures.floor:.0%} of failures"
        promise += f"; certified: {levels}" if fit.certified else f"; not certified ({levels})"
    if checks:
        last = checks[-1]
        outcome = f"drifted: {', '.join(last.drifted)}" if last.drifted else "no drift"
        count = pluralize(len(checks), "check")
        since = f"{last.day}: kappa {show_number(last.kappa)} on {last.items} items, {outcome} ({count})"
    made = "-" if fit.made is None else fit.made.isoformat()
    value = show_number(None if kappa is None else kappa.value)
    return fit.judge, fit.criterion, fit.model, made, str(fit.labels), value, promise, state, since


# Checking for drift.


def check_calibration(  # noqa: PLR0913 (the options of its command)
    run: Path,
    labels: Path,
    *,
    rubric: str = "four_step",
    size: int = 200,
    judge: str | None = None,
    output_format: Literal["table", "json"] = "table",
    quiet: bool = False,
) -> ExitCode:
    """Judge a pinned sample again, and compare the agreement on the latest nights with that of the run, item by item.

    `size`: the number of items for each criterion. Return 2 if a judge has drifted, and print which one and how far; 5 if items
    were not answered. The check is recorded in the folder, and with the fit if that is installed.
    """
    report, known = read_run(run), read_labelled(labels).labels
    engine, judged_by = build_judging_engine()
    current_rubric = engine.registry.find(rubric)
    chosen = _choose_judges(report, current_rubric, judged_by.model, judge)
    asking = AskSettings(current_rubric, "fresh", only={one.judge for one in chosen})
    folder = find_folder(run)
    fits = {fit.id: fit for fit in read_fits([folder / "fits"])}
    if lacking := [one.fit_id for one in chosen if one.fit_id not in fits]:
        raise InputError.at("RUN", f"the folder fits next to it lacks {lacking[0]}, which holds the map")
    samples = [draw_sample(one, size, seed=SEED) for one in chosen]
    pairs = zip(chosen, samples, strict=True)
    items = {item.key: item for one, sample in pairs for item in _list_items(known, one.criterion, sample)}
    answers = asyncio.run(collect_answers(engine, list(items.values()), asking, judged_by.model, quiet=quiet))
    predictions = [one for one in answers if not isinstance(one, UnansweredItem)]
    missing = [one for one in answers if isinstance(one, UnansweredItem) and not one.nothing_to_ask]
    earlier, drifts = read_checks(folder, ItemizedCheck), list[JudgeDrift]()
    for one, sample in zip(chosen, samples, strict=True):
        own = {said.id: said for said in predictions if (said.criterion, said.judge) == (one.criterion, one.judge)}
        nights = [check.agreed for check in earlier.get(one.fit_id, ())]
        drifts.append(check_judge(one, fits[one.fit_id], sample, own, nights))
    _record(folder, [ItemizedCheck(**dict(_build_check(one)), agreed=dict(one.agreed)) for one in drifts])
    check = CheckReport(version=CHECK_VERSION, source=report.source, seed=SEED, judges=tuple(drifts))
    _show_check(check, output_format)
    home = read_settings().home / "fits"
    installed = {fit.id for fit in read_fits([home])}
    # Answers of another model say nothing of how a fit holds.
    _record(home, [_build_check(one) for one in drifts if one.fit in installed and one.models == (one.model,)])
    for reason in missing:
        say(f"not judged: {reason}")
    if check.drifted or missing:
        return ExitCode.FAILED if check.drifted else ExitCode.DATA
    return ExitCode.PASSED if all(one.models == (one.model,) for one in drifts) else ExitCode.UNDECIDED


def _choose_judges(report: CalibrationReport, rubric: Rubric, model: str, name: str | None) -> list[JudgeReport]:
    """Choose the judges of the run that the rubric still uses, unchanged, for the same criterion: one for each.

    InputError if there is none, or if several remain and not exactly one has this model.
    """
    criteria = {one.id for one in rubric.criteria} & {one.criterion for one in report.judges}
    current = {(criterion, find_check(rubric, criterion).judge) for criterion in criteria}
    digests = {one: judge.digest for one, judge in rubric.judges_by_id.items()}
    named = [one for one in report.judges if name in (None, one.name) and (one.criterion, one.judge) in current]
    fitting = [one for one in named if digests.get(one.judge) == one.judge_digest]
    if not fitting:
        judges = ", ".join(sorted({f"{one.name} on {one.criterion}" for one in report.judges}))
        also = "" if name is None else f" and {name!r}"
        raise InputError.at("RUN", f"no judge in it is one of {rubric.id} as it is now{also}: {judges}")
    chosen: list[JudgeReport] = []
    for pair in sorted({(one.criterion, one.judge) for one in fitting}):
        own = [one for one in fitting if (one.criterion, one.judge) == pair]
        alike = own if len(own) == 1 else [one for one in own if is_same_model(model, one.model)]
        if len(alike) != 1:
            names = ", ".join(one.name for one in own)
            raise InputError.at("RUN", f"several judges on {own[0].criterion!r}: {names}; choose one with --judge")
        chosen += alike
    return chosen


def _list_items(labels: LabelledSet, criterion: str, sample: Sequence[HeldOutItem]) -> Iterator[LabelledItem]:
    """Yield the labelled items of a sample; InputError if one is gone or has another label now."""
    known = {item.id: item for item in labels.items if item.criterion == criterion}
    for item in sample:
        if item.id not in known:
            raise InputError.at(labels.source, f"no item {item.id!r} of {criterion!r}, which the run held out")
        if known[item.id].passes is not item.label:
            raise InputError.at(labels.source, f"the label of {item.id!r} has changed since the run; fit again")
        yield known[item.id]


def _show_check(check: CheckReport, output_format: Literal["table", "json"]) -> None:
    """Write a check, and print on standard error which judges have drifted."""
    sections: list[Section] = []
    for one in check.judges:
        rows = [(name, show_number(one.then[name]), show_number(one.now[name])) for name in ("kappa", "accuracy")]
        title = f"{one.judge} on {one.criterion}: {pluralize(one.n, 'item')}"
        change = f"{'drifted' if one.drifted else 'no drift'}: {_describe_fall(one)}"
        sections += build_section(title, ("", "then", "now"), rows, change)
    print_document(sections, output_format, check)
    for one in check.judges:
        name = f"{one.judge} on {one.criterion}"
        if one.drifted:
            say(f"drift: {name}: {_describe_fall(one)}")
        if others := [model for model in one.models if model != one.model]:
            say(
                f"{name}: {', '.join(others)} answered; no fit for {one.model} applies to it, and none records this check"
            )
        if one.unanswered:
            say(f"{name}: {pluralize(one.unanswered, 'item')} without an answer, left out on both sides")


def _record(folder: Path, checks: Sequence[FitCheck]) -> None:
    """Record checks; say so if the folder cannot be written."""
    try:
        append_checks(folder, checks)
    except OSError as error:
        say(f"the check is not recorded: {folder}: {error.strerror}")


def _build_check(one: JudgeDrift) -> FitCheck:
    drifted = (_describe_fall(one),) if one.drifted else ()
    return FitCheck(
        fit=one.fit, day=get_today(), items=one.n, kappa=one.now["kappa"], then=one.then["kappa"], drifted=drifted
    )


def _describe_fall(one: JudgeDrift) -> str:
    nights = "tonight" if one.fall.nights == 1 else f"on the latest {one.fall.nights} nights"
    side = "lower" if one.fall.value > 0 else "higher"
    change = f"{side} by {abs(one.fall.value):.3f} than then" if one.fall.value else "the same as then"
    return f"agreement {nights} is {change} (drift: lower by more than {one.fall.limit:.3f})"
