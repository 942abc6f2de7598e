"""Certify the recognition of passes and failures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from typer import Option

from service.calibration.certifying import certify, digest_labels, digest_set, judge_fresh
from service.calibration.results import JudgeReport
from service.cli import options
from service.cli.calibrating import (
    JudgeOfRun,
    Run,
    find_folder,
    read_labelled,
    read_prediction_files,
    read_run,
    record_look,
    write_report,
)
from service.cli.exits import ExitCode
from service.cli.options import read_settings, writing
from service.cli.screen import pluralize, print_document
from service.errors import InputError
from service.fits.files import get_today
from service.reporting.document import Section


def main(
    run: Run,
    tpr: Annotated[float, Option(metavar="SHARE", min=0.5, max=0.999, help="Passes to recognise, at least.")] = 0.9,
    tnr: Annotated[float, Option(metavar="SHARE", min=0.5, max=0.999, help="Failures to recognise, at least.")] = 0.9,
    judge: JudgeOfRun = None,
    labels: Annotated[Path | None, Option(metavar="FILE", help="Fresh labels, instead of those held out.")] = None,
    predictions: Annotated[
        list[Path] | None,
        Option(metavar="FILE", help="The judges' answers about them. [default: those with the labels]"),
    ] = None,
    output_format: options.TableOrJson = "table",
) -> int:
    """Certify with 95 % confidence that verdicts recognise these shares of passes and of failures; exit with 2 if not.

    Stores the bounds in the fits and the report of the run; install the run again to take them along. Each further look at the
    same labels may err half as often as the one before, so its bounds are lower.
    """
    report, folder = read_run(run), find_folder(run)
    written = {fit.id for fit in report.fits}
    judges = [one for one in report.all_judges if one.fit.id in written and judge in (None, one.name)]
    if not judges:
        raise InputError.at(
            str(run), "no fit of a judge in it" + ("" if judge is None else f" that is called {judge!r}")
        )
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
