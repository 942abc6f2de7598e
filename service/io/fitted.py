"""The process that fits what judges said of labelled items: `python -m service.io.fitted`.

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

from service.calibrating.labels import LabelledItem, labelled_set, parsed, read_models
from service.calibrating.options import Options
from service.calibrating.predictions import Prediction, Said, read_predictions
from service.calibrating.results import as_json
from service.calibrating.run import calibrate
from service.core.rubric import Rubric
from service.errors import InputError
from service.io.engine import REPORT
from service.io.fits import file_name, today
from service.io.fitting import FITTED
from service.io.predicting import Unanswered, prediction_of
from service.io.store.calibrations import Fitted

REASONS = 20
"""How many questions without an answer are told one by one."""

ITEM: TypeAdapter[LabelledItem] = TypeAdapter(LabelledItem)


def fitted(job: Mapping[str, Any]) -> Fitted:
    """What becomes of a calibration that is judged."""
    items = read_models(parsed(job["labels"].split("\n")), ITEM)
    said = list(_said(job, [item for _, item in items]))
    missing = [str(one) for one in said if isinstance(one, Unanswered)]
    told = Fitted(unanswered=len(missing), reasons=tuple(missing[:REASONS]))
    labels = labelled_set(items, source=job["name"] or "labels")
    predictions = [one for one in said if isinstance(one, Prediction)]
    options = Options(method=job["options"]["method"], seed=job["options"]["seed"], made=today())
    try:
        run = calibrate(labels, predictions, options)
    except InputError as error:
        return replace(told, problem=str(error))
    files = [{"name": file_name(fit), "fit": json.loads(as_json(fit))} for fit in run.fits]
    return replace(told, report=as_json(run.report).decode(), fits=json.dumps(files))


def _said(job: Mapping[str, Any], items: Sequence[LabelledItem]) -> Iterator[Prediction | Unanswered]:
    if job["predictions"] is not None:
        yield from read_predictions(job["predictions"].split("\n"))
        return
    rubric = Rubric.model_validate(job["options"]["rubric"])
    told = {line["index"]: line["report"] for line in map(json.loads, job["results"])}
    for at in range(len(items) * job["options"]["repeats"]):
        said = Said(*items[at % len(items)].key, at // len(items))
        if at in told:
            yield prediction_of(said, REPORT.validate_python(told[at]), rubric)
        else:
            yield Unanswered(said, "it could not be judged")


if __name__ == "__main__":
    sys.stdout.buffer.write(FITTED.dump_json(fitted(json.load(sys.stdin.buffer))))
