"""The process that fits judges to labelled items: `python -m service.jobs.fit_process`.

Standard input takes one JSON document: `name`, the submitted `options`, and lines of JSON as `labels`, `predictions` (null
where judges were asked) and `results`. The fit outcome goes to standard output.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from service.calibration.labels import LabelledItem, build_labelled_set, parse_lines, read_models
from service.calibration.options import ReportOptions
from service.calibration.predictions import Prediction, read_predictions
from service.calibration.report_predictions import UnansweredItem, read_prediction
from service.calibration.results import render_report_json
from service.calibration.run import calibrate
from service.core.rubric import Rubric
from service.engine import REPORT
from service.errors import InputError
from service.fits.files import build_file_name, get_today
from service.jobs.fitting import FIT_OUTCOME
from service.labelling.predictions import AskSettings, build_request, find_own_steps
from service.reading.request import read_request, read_request_trace
from service.store.jobs.calibrations import FitOutcome

MAX_REASONS = 20
"""How many unanswered questions are listed one by one."""

ITEM: TypeAdapter[LabelledItem] = TypeAdapter(LabelledItem)


def fit_calibration(job: Mapping[str, Any]) -> FitOutcome:
    """Fit a calibration whose items are judged."""
    items = read_models(parse_lines(job["labels"].split("\n")), ITEM)
    predictions = list(_list_predictions(job, [item for _, item in items]))
    missing = [str(one) for one in predictions if isinstance(one, UnansweredItem) and not one.nothing_to_ask]
    outcome = FitOutcome(unanswered=len(missing), reasons=tuple(missing[:MAX_REASONS]))
    labels = build_labelled_set(items, source=job["name"] or "labels")
    answered = [one for one in predictions if isinstance(one, Prediction)]
    given = {name: job["options"].get(name) for name in ("method", "seed", "guarantee")}
    try:
        report = calibrate(labels, answered, ReportOptions(**given, made=get_today()))
    except InputError as error:
        return replace(outcome, problem=str(error))
    files = [{"name": build_file_name(fit), "fit": json.loads(render_report_json(fit))} for fit in report.fits]
    return replace(outcome, report=render_report_json(report).decode(), fits=json.dumps(files))


def _list_predictions(job: Mapping[str, Any], items: Sequence[LabelledItem]) -> Iterator[Prediction | UnansweredItem]:
    if job["predictions"] is not None:
        yield from read_predictions(job["predictions"].split("\n"))
        return
    settings = AskSettings(Rubric.model_validate(job["options"]["rubric"]), repeats=job["options"]["repeats"])
    reports = {line["index"]: line["report"] for line in map(json.loads, job["results"])}
    for at, one in enumerate(settings.list_questions(items)):
        if at in reports:
            report = REPORT.validate_python(reports[at])
            trace = read_request_trace(read_request(build_request(one, settings)))
            yield read_prediction(one.answer_id, report, settings.rubric, steps=find_own_steps(one.item, trace))
        else:
            yield UnansweredItem(one.answer_id, "it could not be judged")


if __name__ == "__main__":
    sys.stdout.buffer.write(FIT_OUTCOME.dump_json(fit_calibration(json.load(sys.stdin.buffer))))
