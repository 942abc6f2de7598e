"""Fits: made from predictions and labels, certified, installed, listed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from typer import Option

from service.calibration.certifying import certify, digest_labels, digest_set, judge_fresh
from service.calibration.figures import Resampling
from service.calibration.options import ReportOptions
from service.calibration.report.wording import show_number
from service.calibration.results import JudgeReport, render_report_json
from service.calibration.run import calibrate
from service.cli import options
from service.cli.calibrating import (
    Draws,
    JudgeOfRun,
    Labels,
    Predictions,
    Run,
    find_folder,
    naming_file,
    read_labelled,
    read_prediction_files,
    read_run,
    write_report,
    write_run,
)
from service.cli.commands.keys import find_user
from service.cli.exits import ExitCode
from service.cli.options import read_settings, writing
from service.cli.screen import pluralize, print_document, print_json, print_table, say, warn
from service.core.judging.fit_warnings import IN_USE
from service.core.judging.fits.fit import Fit
from service.errors import InputError, SettingsError
from service.fits.files import AgingFits, build_file_name, describe_state, get_today, read_fits, refuse_useless
from service.fits.manager import FitCheck, read_checks
from service.fits.own_files import note_own_files
from service.registry import Registry
from service.reporting.document import Section
from service.reporting.numbers import render_number
from service.wiring import build_engine, choose_route, list_rubric_folders, prepare_database


def fit_judges(
    labels: Labels,
    out: Annotated[Path, Option(metavar="FOLDER", help="Folder to write the report and the fits to.")],
    predictions: Predictions = None,
    method: Annotated[
        Literal["auto", "identity", "platt", "isotonic"],
        Option(help="The map to fit; auto means Platt below 300 labels, else isotonic."),
    ] = "auto",
    guarantee: Annotated[
        float | None,
        Option(metavar="SHARE", min=0.5, max=0.999, help="Guarantee that this share of accepted verdicts agrees."),
    ] = None,
    draws: Draws = 1_000,
) -> None:
    """Fit recorded predictions to human labels.

    The fits use all labels; the figures come from cross-fitting: each label is scored once, by a fit that has not seen it.
    Writes report.json, report.md, report.html and fits/*.json. Run `callgrade calibrate install` to install the fits; each then
    calibrates its judge.
    """
    chosen = ReportOptions(method=method, resampling=Resampling(draws), guarantee=guarantee, made=get_today())
    labelled = read_labelled(labels)
    predicted = read_prediction_files(predictions or ()) or labelled.predictions
    if not predicted:
        raise InputError.at(str(labels), "no predictions; name a file that has them with --predictions")
    with naming_file(labels):
        run = calibrate(labelled.labels, predicted, chosen)
    write_run(run, out)


def certify_fits(
    run: Run,
    tpr: Annotated[float, Option(metavar="SHARE", min=0.5, max=0.999, help="Passes to recognise, at least.")] = 0.9,
    tnr: Annotated[float, Option(metavar="SHARE", min=0.5, max=0.999, help="Failures to recognise, at least.")] = 0.9,
    judge: JudgeOfRun = None,
    labels: Annotated[Path | None, Option(metavar="FILE", help="Fresh labels, instead of those held out.")] = None,
    predictions: Predictions = None,
    output_format: options.TableOrJson = "table",
) -> int:
    """Certify the recognition of passes and failures.

    With 95 % confidence, verdicts recognise these shares of both; the exit code is 2 if not. Stores the bounds in the fits and
    the report of the run; install the run again to take them along. Each further look at the same labels may err half as often
    as the one before, so its bounds are lower.
    """
    report, folder = read_run(run), find_folder(run)
    written = {fit.id for fit in report.fits}
    judges = [one for one in report.all_judges if one.fit.id in written and judge in (None, one.name)]
    if not judges:
        named = "" if judge is None else f" that is called {judge!r}"
        raise InputError.at(str(run), f"no fit of a judge in it{named}")
    if labels is not None:
        fresh = read_labelled(labels)
        fresh = fresh._replace(predictions=read_prediction_files(predictions or ()) or fresh.predictions)
        judges = [judge_fresh(one, fresh) for one in judges]
        if not any(one.items for one in judges):
            raise InputError.at(str(labels), "no label that the run has not seen has an answer of one of its judges")
    with writing(folder, "RUN"):
        digest = digest_set(judges) if labels is not None else None
        earlier = max(  # also where the run comes from another machine
            sum(digest in (None, look.labels) for look in one.fit.certificates) for one in judges
        )
        look = 1 + max(earlier, record_look(read_settings().home / "fits", digest_labels(judges)))
        found = certify(judges, tpr=tpr, tnr=tnr, look=look, made=get_today())

        def note(one: JudgeReport) -> JudgeReport:
            if one.fit.id not in found:
                return one
            certificates = (*one.fit.certificates, found[one.fit.id])
            return replace(one, fit=one.fit.model_copy(update={"certificates": certificates}))

        juries = tuple([replace(one, report=note(one.report)) for one in report.juries])
        write_report(replace(report, judges=tuple(map(note, report.judges)), juries=juries), folder)
    count = sum(one.certified for one in found.values())
    total = f"in all: {'certified' if count == len(found) else 'not certified'}, {count} of {pluralize(len(found), 'judge')}"
    lines = [f"{one.name} on {one.criterion}: {found[one.fit.id].explain()}" for one in judges]
    print_document([Section("Certified recognition", lines=(*lines, total))], output_format, found)
    return ExitCode.PASSED if count == len(found) else ExitCode.FAILED


def record_look(folder: Path, labels: list[str]) -> int:
    """Record the digests of labels that are looked at; return how many earlier looks saw any of them."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "looks.jsonl").open("a+", encoding="utf-8") as file:
        file.seek(0)
        earlier = sum(any(label in line for label in labels) for line in file)
        file.write(json.dumps(labels) + "\n")
    return earlier


def install_fits(run: Run) -> None:
    """Install the fits of a run.

    They are copied to CALLGRADE_HOME/fits, so that they turn judges' answers into verdicts. Refuses the fit of a judge that is
    not useful: one that the held-out labels do not show to be better than chance. Warns about each judge and model whose
    verdicts stay open because no fit is theirs.
    """
    source = find_folder(run) / "fits"
    found = read_fits([source])
    if not found:
        raise typer.BadParameter(f"{source} holds no fit; `callgrade calibrate run` writes them", param_hint="RUN")
    fits, refused = refuse_useless(found)
    settings = read_settings()
    folder = settings.home / "fits"
    with writing(folder, "CALLGRADE_HOME"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for fit in fits:  # written whole or not at all, because a service may be reading the folder
            draft = folder / f"{build_file_name(fit)}.new"
            draft.write_bytes(render_report_json(fit))
            draft.replace(folder / build_file_name(fit))
    if settings.database_url or (settings.home / "store.db").is_file():  # no store is created for it
        try:
            note_own_files(settings, prepare_database(settings), by=find_user())
        except SettingsError as error:
            warn(f"the installation is not in the audit log: {error}")
    engine = build_engine(settings)
    for fit in fits:
        state = describe_state(fit, engine.registry.judges, engine.registry.list_evidence())
        say(f"{fit.id} for {fit.model}: {_describe_use(fit) if state == IN_USE else f'decides nothing: {state}'}")
    say(f"{pluralize(len(fits), 'fit')} in {folder}; restart a running service to use them")
    for sentence in (*refused, *engine.list_warnings()):
        warn(sentence)


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


HEAD = ("judge", "criterion", "model", "made", "labels", "kappa", "promise", "state", "since then")


def list_fits(output_format: options.TableOrJson = "table") -> None:
    """List the installed fits.

    Those in CALLGRADE_HOME/fits, whether each applies, and what later checks found.
    """
    settings = read_settings()
    folder = settings.home / "fits"
    fits = tuple(AgingFits(read_fits([folder]), max_age_days=settings.fit_max_age_days))
    if not fits:
        say(f"no fit in {folder}; `callgrade calibrate install RUN` installs those of a run")
        return
    registry, checks = Registry(list_rubric_folders(settings)), read_checks(folder, FitCheck)
    model, route = settings.judge_model, choose_route(settings) if settings.judge_model else None
    ordered = sorted(fits, key=lambda fit: (fit.judge, fit.criterion, fit.model))
    known, models = (registry.judges, registry.list_evidence()), [model] if model else ()
    states = [describe_state(fit, *known, models=models, route=route) for fit in ordered]
    rows = [_build_fit_row(fit, state, checks.get(fit.id, ())) for fit, state in zip(ordered, states, strict=True)]
    if output_format == "json":
        print_json([dict(zip(HEAD, row, strict=True)) for row in rows])
    for row in rows if output_format == "table" else ():
        print_table(("", ""), list(zip(HEAD, row, strict=True))[1:], title=f"Installed: {row[0]}")


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
