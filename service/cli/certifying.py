"""Certify the fits of a run, and record each look at labels."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Literal

import typer

from service.calibration.certifying import certify, digest_labels
from service.calibration.results import JudgeReport, render_json
from service.cli.calibrating import read_run, write_report
from service.cli.exits import ExitCode
from service.cli.fitted import find_folder
from service.cli.options import read_settings
from service.cli.screen import pluralize, print_document
from service.errors import InputError
from service.fits.files import build_file_name, get_today, read_fits
from service.reporting.document import Section

LOOKS = "looks.jsonl"
"""The file beside the installed fits with the digests of the labels of each look."""


def certify_run(
    run: Path, *, tpr: float, tnr: float, judge: str | None = None, output_format: Literal["table", "json"] = "table"
) -> ExitCode:
    """Certify the fits of a run on what it held out, and store the certificates in fits and report; InputError for no fit."""
    report, folder = read_run(run), find_folder(run)
    fits = {fit.id: fit for fit in read_fits([folder / "fits"])}
    judges = [one for one in report.all_judges if one.fit_id in fits and judge in (None, one.name)]
    if not judges:
        raise InputError.at(
            str(run), "no fit of a judge in it" + ("" if judge is None else f" that is called {judge!r}")
        )
    try:
        earlier = max(
            len(fits[one.fit_id].certificates) for one in judges
        )  # also where the run comes from another machine
        look = 1 + max(earlier, _record_look(read_settings().home / "fits", digest_labels(judges)))
        found = certify(judges, tpr=tpr, tnr=tnr, look=look, made=get_today())
        for name, certificate in found.items():
            fits[name] = fits[name].model_copy(update={"certificates": (*fits[name].certificates, certificate)})
            (folder / "fits" / build_file_name(fits[name])).write_bytes(render_json(fits[name]))

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


def _record_look(folder: Path, labels: list[str]) -> int:
    """Record a look at labels; return how many earlier ones saw any of them."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / LOOKS).open("a+", encoding="utf-8") as file:
        file.seek(0)
        earlier = sum(any(label in line for label in labels) for line in file)
        file.write(json.dumps(labels) + "\n")
    return earlier
