"""Read submitted calibrations: labelled items with how to ask and fit their judge, or with recorded predictions.

Every item is checked before anything is stored, and all problems are reported together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import Field, JsonValue, TypeAdapter
from pydantic_core import to_json

from service.calibration.labels import Key, LabelledItem
from service.calibration.predictions import Prediction
from service.calibration.splits import SEED
from service.core.judging.fits.fit import Method
from service.core.models.validation import validate
from service.engine import Engine
from service.errors import InputError, MalformedError, TooLargeError
from service.jobs.chunking import Cutter
from service.jobs.submissions import BadItems, JobBounds, RunOptions, SubmittedEntry
from service.labelling.predictions import AskSettings, build_request, check_item
from service.reading.request import ScoreRequest
from service.store.jobs.submission import Material

MAX_BODY_BYTES = 64 * 2**20
"""Largest body, unpacked: labelled items are kept in memory."""

DEFAULT_RUBRIC = "four_step"
"""The rubric whose judges are asked where none is named."""


class CalibrationOptions(RunOptions):
    """How labelled items are judged, and how the fit is made."""

    repeats: Annotated[int, Field(ge=1, le=10)] = 1
    """How many answers to get for each item: those beyond the first show how often a judge changes its mind."""
    method: Literal["auto", Method] = "auto"
    """The map from a judge's value to a probability. auto: Platt below 300 labels, isotonic from there on."""
    seed: Annotated[str, Field(max_length=256)] = SEED
    """Seeds the split into items for fitting and held-out items."""
    guarantee: Annotated[float, Field(ge=0.5, lt=1)] | None = None
    """The share of accepted verdicts that must agree with the labels. Absent: the fits promise nothing."""


ITEM: TypeAdapter[LabelledItem] = TypeAdapter(LabelledItem)
PREDICTION: TypeAdapter[Prediction] = TypeAdapter(Prediction)


class CalibrationDraft:
    """A calibration: labelled items, each asked `repeats` times, or recorded predictions."""

    dry = False

    def __init__(self, options: CalibrationOptions, engine: Engine, bounds: JobBounds) -> None:
        self._options = options
        self._engine = engine
        self._max_items = bounds.max_items
        self._items: dict[Key, LabelledItem] = {}
        self._predictions: list[Prediction] = []
        self._lines: dict[tuple[object, ...], int] = {}  # of each item and prediction, by what must be unique of it
        self._bad = BadItems()

    def cut(self, entries: Iterable[SubmittedEntry], cutter: Cutter) -> dict[str, Any]:
        """Cut the items, unless predictions were recorded, and return the material to fit."""
        for line, value in entries:
            try:
                self._read(line, value)
            except InputError as error:
                self._bad.add(line, error)
        settings = None if self._predictions else self._choose_settings()
        if settings is not None:
            for key, item in self._items.items():
                try:
                    check_item(item, settings)
                except InputError as error:
                    self._bad.add(self._lines[key], error)
        if self._bad.count:
            raise self._bad.build_error()
        if not self._items:
            raise MalformedError.at("", "there are no labelled items")
        if settings is not None:
            self._cut(settings, cutter)
        return {"material": self._build_material(settings)}

    def _read(self, line: int, value: JsonValue | InputError) -> None:
        """Read a line; one with `raw` is a prediction."""
        if isinstance(value, InputError):
            raise value
        if isinstance(value, dict) and "raw" in value:
            prediction = validate(PREDICTION, value)
            key = (prediction.answer_id, prediction.binding)
            if key in self._lines:
                raise InputError.at("/sample", f"the same answer of the same judge as of /{self._lines[key]}")
            self._predictions.append(prediction)
        else:
            item = validate(ITEM, value)
            key = item.key
            if key in self._lines:
                raise InputError.at("/id", f"the same id and criterion as of /{self._lines[key]}")
            self._items[item.key] = item
        self._lines[key] = line

    def _choose_settings(self) -> AskSettings:
        """Choose the judges and how to ask them; raise InputError if nobody can be asked."""
        options = self._options
        fields: dict[str, Any] = {"rubric": options.rubric or DEFAULT_RUBRIC, "judges": options.judges}
        request = ScoreRequest.model_construct(**fields, judge_model=options.judge_model)
        self._engine.admit(request)
        mode = self._engine.choose_mode(request)
        if mode in ("off", "none"):
            raise InputError.at("/judges", "a judge is needed, or predictions; expected cached, live or fresh")
        return AskSettings(self._engine.registry.find(fields["rubric"]), mode, options.repeats)

    def _cut(self, settings: AskSettings, cutter: Cutter) -> None:
        questions = settings.list_questions(list(self._items.values()))
        if len(questions) > self._max_items:
            raise TooLargeError.at("", f"more than {self._max_items} questions in one calibration")
        for n, one in enumerate(questions):
            request = cast("dict[str, JsonValue]", build_request(one, settings))
            if self._options.judge_model is not None:
                request["judge_model"] = self._options.judge_model
            cutter.add(to_json({"custom_id": f"question-{n}", "request": request, "sample": one.answer_id.sample}))
        cutter.finish()

    def _build_material(self, settings: AskSettings | None) -> Material:
        names = {"judge_model", "repeats", "method", "seed", "guarantee"}
        options: dict[str, JsonValue] = self._options.model_dump(mode="json", include=names)
        options["rubric"] = None if settings is None else settings.rubric.model_dump(mode="json")
        options["judges"] = None if settings is None else settings.mode
        predictions = _dump_lines(self._predictions) if settings is None else None
        return Material(len(self._items), _dump_lines(list(self._items.values())), predictions, options)


def _dump_lines(models: Sequence[LabelledItem] | Sequence[Prediction]) -> bytes:
    return b"\n".join([one.model_dump_json().encode() for one in models])
