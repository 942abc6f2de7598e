"""The process that fits what judges said of labelled items: `python -m service.jobs.fitted`.

One JSON document comes on standard input: `name`, `options` as they were submitted, and lines of JSON as `labels`,
`predictions` (null where judges were asked) and `results`. What became of it goes to standard output.
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
from service.calibration.results import render_json
from service.calibration.run import calibrate
from service.core.rubric import Rubric
from service.engine import REPORT
from service.errors import InputError
from service.fits.files import build_file_name, get_today
from service.jobs.fitting import FITTED
from service.jobs.predicting import Asking, build_request, find_own_steps
from service.request import read_request, read_request_trace
from service.store.jobs.calibrations import FitOutcome

REASONS = 20
"""How many questions without an answer are told one by one."""

ITEM: TypeAdapter[LabelledItem] = TypeAdapter(LabelledItem)


def fit_calibration(job: Mapping[str, Any]) -> FitOutcome:
    """What becomes of a calibration that is judged."""
    items = read_models(parse_lines(job["labels"].split("\n")), ITEM)
    said = list(_list_predictions(job, [item for _, item in items]))
    missing = [str(one) for one in said if isinstance(one, UnansweredItem) and not one.nothing_to_ask]
    told = FitOutcome(unanswered=len(missing), reasons=tuple(missing[:REASONS]))
    labels = build_labelled_set(items, source=job["name"] or "labels")
    predictions = [one for one in said if isinstance(one, Prediction)]
    try:
        run = calibrate(labels, predictions, _read_options(job["options"]))
    except InputError as error:
        return replace(told, problem=str(error))
    files = [{"name": build_file_name(fit), "fit": json.loads(render_json(fit))} for fit in run.fits]
    return replace(told, report=render_json(run.report).decode(), fits=json.dumps(files))


def _read_options(given: Mapping[str, Any]) -> ReportOptions:
    options = ReportOptions(method=given["method"], seed=given["seed"], made=get_today())
    return replace(options, guarantee=given.get("guarantee"), cascade=tuple(given.get("cascade", ())))


def _list_predictions(job: Mapping[str, Any], items: Sequence[LabelledItem]) -> Iterator[Prediction | UnansweredItem]:
    if job["predictions"] is not None:
        yield from read_predictions(job["predictions"].split("\n"))
        return
    asking = Asking(Rubric.model_validate(job["options"]["rubric"]), repeats=job["options"]["repeats"])
    told = {line["index"]: line["report"] for line in map(json.loads, job["results"])}
    for at, one in enumerate(asking.list_questions(items)):
        if at in told:
            report = REPORT.validate_python(told[at])
            trace = read_request_trace(read_request(build_request(one, asking)))
            yield read_prediction(one.said, report, asking.rubric, steps=find_own_steps(one.item, trace))
        else:
            yield UnansweredItem(one.said, "it could not be judged")


if __name__ == "__main__":
    sys.stdout.buffer.write(FITTED.dump_json(fit_calibration(json.load(sys.stdin.buffer))))
