"""Certify the fits of a run, and record each look at labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import typer

from service.calibration.certifying import certify, digest_labels, digest_set, judge_fresh
from service.calibration.results import JudgeReport, render_report_json
from service.cli.calibrating import read_labelled, read_prediction_files, read_run, write_report
from service.cli.exits import ExitCode
from service.cli.fitted import find_folder
from service.cli.options import read_settings
from service.cli.screen import pluralize, print_document
from service.errors import InputError
from service.fits.files import build_file_name, get_today, read_fits
from service.reporting.document import Section

LOOKS = "looks.jsonl"
"""The file beside the installed fits with the digests of the labels of each look."""


def certify_run(  # noqa: PLR0913 (the options of a command)
    run: Path,
    *,
    tpr: float,
    tnr: float,
    judge: str | None = None,
    labels: Path | None = None,
    predictions: Sequence[Path] = (),
    output_format: Literal["table", "json"] = "table",
) -> ExitCode:
    """Certify the fits of a run on what it held out, and store the certificates in fits and report; InputError for no fit.

    `labels`: certify on these labels, with the judges' answers of `predictions` or among them, and not on those of the run.
    """
    report, folder = read_run(run), find_folder(run)
    fits = {fit.id: fit for fit in read_fits([folder / "fits"])}
    judges = [one for one in report.all_judges if one.fit_id in fits and judge in (None, one.name)]
    if not judges:
        raise InputError.at(
            str(run), "no fit of a judge in it" + ("" if judge is None else f" that is called {judge!r}")
        )
    if labels is not None:
        fresh = read_labelled(labels)
        fresh = fresh._replace(predictions=read_prediction_files(predictions) or fresh.predictions)
        judges = [judge_fresh(one, fits[one.fit_id], fresh) for one in judges]
        if not any(one.items for one in judges):
            raise InputError.at(str(labels), "no label that the run has not seen has an answer of one of its judges")
    try:
        digest = digest_set(judges) if labels is not None else None
        earlier = max(  # also where the run comes from another machine
            sum(digest in (None, look.labels) for look in fits[one.fit_id].certificates) for one in judges
        )
        look = 1 + max(earlier, record_look(read_settings().home / "fits", digest_labels(judges)))
        found = certify(judges, tpr=tpr, tnr=tnr, look=look, made=get_today())
        for name, certificate in found.items():
            fits[name] = fits[name].model_copy(update={"certificates": (*fits[name].certificates, certificate)})
            (folder / "fits" / build_file_name(fits[name])).write_bytes(render_report_json(fits[name]))

        def note(one: JudgeReport) -> JudgeReport:
            return replace(one, certificates=fits[one.fit_id].certificates) if one.fit_id in fits else one

        juries = tuple([replace(one, report=note(one.report)) for one in report.juries])
        write_report(replace(report, judges=tuple(map(note, report.judges)), juries=juries), folder)
    except OSError as error:
        raise typer.BadParameter(f"{error.filename}: {error.strerror}", param_hint="RUN") from None
    count = sum(one.certified for one in found.values())
    total = f"in all: {'certified' if count == len(found) else 'not certified'}, {count} of {pluralize(len(found), 'judge')}"
    lines = [f"{one.name} on {one.criterion}: {found[one.fit_id].explain()}" for one in judges]
    print_document([Section("Certified recognition", lines=(*lines, total))], output_format, found)
    return ExitCode.PASSED if count == len(found) else ExitCode.FAILED


def record_look(folder: Path, labels: list[str]) -> int:
    """Record a look at labels; return how many earlier ones saw any of them."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / LOOKS).open("a+", encoding="utf-8") as file:
        file.seek(0)
        earlier = sum(any(label in line for label in labels) for line in file)
        file.write(json.dumps(labels) + "\n")
    return earlier
