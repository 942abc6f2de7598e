"""Read submitted calibrations: labelled items with how to ask and fit their judge, or with recorded predictions.

Every item is checked before anything is stored, and all problems are reported together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal, cast

from pydantic import Field, JsonValue, TypeAdapter
from pydantic_core import to_json

from service.calibration.labels import Key, LabelledItem
from service.calibration.predictions import Prediction
from service.calibration.splits import SEED
from service.core.judging.fits import Method
from service.core.models.validation import validate
from service.core.rubric import Rubric
from service.engine import Engine
from service.errors import InputError, MalformedError, TooLargeError
from service.jobs.admission import JobBounds
from service.jobs.chunking import Cutter
from service.jobs.submissions import BadItems, RunOptions, SubmittedEntry
from service.labelling.predictions import AskSettings, ItemQuestion, build_request, check_item
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
        self.options = options
        self._engine = engine
        self._max_items = bounds.max_items

    def cut(self, entries: Iterable[SubmittedEntry], cutter: Cutter) -> dict[str, Any]:
        """Cut the items, unless predictions were recorded, and return the material to fit."""
        rows = _CalibrationRows()
        rows.read(entries)
        settings = None if rows.predictions else self._choose_settings()
        if settings is not None:
            rows.check(settings)
        rows.refuse()
        if settings is not None:
            self._cut(rows, settings, cutter)
        return {"material": _build_material(rows, self.options, settings)}

    def _choose_settings(self) -> AskSettings:
        """Choose the judges and how to ask them; raise InputError if nobody can be asked."""
        options = self.options
        fields: dict[str, Any] = {"rubric": options.rubric or DEFAULT_RUBRIC, "judges": options.judges}
        request = ScoreRequest.model_construct(**fields, judge_model=options.judge_model)
        self._engine.admit(request)
        mode = self._engine.choose_mode(request)
        if mode in ("off", "none"):
            raise InputError.at("/judges", "a judge is needed, or predictions; expected cached, live or fresh")
        return AskSettings(self._engine.registry.find(fields["rubric"]), mode, options.repeats)

    def _cut(self, rows: _CalibrationRows, settings: AskSettings, cutter: Cutter) -> None:
        questions = settings.list_questions(list(rows.items.values()))
        if len(questions) > self._max_items:
            raise TooLargeError.at("", f"more than {self._max_items} questions in one calibration")
        for line in _build_lines(questions, settings, self.options):
            cutter.add(line)
        cutter.finish()


class _CalibrationRows:
    """The usable lines of a body, and the problems of the others."""

    def __init__(self) -> None:
        self.items: dict[Key, LabelledItem] = {}
        self.predictions: list[Prediction] = []
        self._pointers: dict[Key, str] = {}
        self._answer_pointers: dict[tuple[object, ...], str] = {}
        self._bad = BadItems()

    def read(self, entries: Iterable[SubmittedEntry]) -> None:
        """Read all lines; one with `raw` is a prediction."""
        for line, value in entries:
            try:
                if isinstance(value, InputError):
                    raise value
                is_prediction = isinstance(value, dict) and "raw" in value
                (self._add_prediction if is_prediction else self._add_item)(f"/{line}", value)
            except InputError as error:
                self._bad.add(0, f"/{line}", error)

    def check(self, settings: AskSettings) -> None:
        """Check for each item that a judge can be asked about it."""
        for key, item in self.items.items():
            try:
                check_item(item, settings)
            except InputError as error:
                self._bad.add(0, self._pointers[key], error)

    def refuse(self) -> None:
        """Raise BadLinesError if any row is bad, MalformedError if there is no item."""
        if self._bad.count:
            raise self._bad.build_error()
        if not self.items:
            raise MalformedError.at("", "there are no labelled items")

    def _add_item(self, pointer: str, value: JsonValue) -> None:
        item = validate(ITEM, value)
        if item.key in self.items:
            message = f"the same id and criterion as of {self._pointers[item.key]}"
            raise InputError.at("/id", message)
        self.items[item.key], self._pointers[item.key] = item, pointer

    def _add_prediction(self, pointer: str, value: JsonValue) -> None:
        prediction = validate(PREDICTION, value)
        key = (prediction.answer_id, prediction.binding)
        if key in self._answer_pointers:
            raise InputError.at("/sample", f"the same answer of the same judge as of {self._answer_pointers[key]}")
        self._answer_pointers[key] = pointer
        self.predictions.append(prediction)


def _build_lines(
    questions: Iterable[ItemQuestion], settings: AskSettings, options: CalibrationOptions
) -> Iterator[bytes]:
    """Render the questions as batch items."""
    for n, one in enumerate(questions):
        request = cast("dict[str, JsonValue]", build_request(one, settings))
        if options.judge_model is not None:
            request["judge_model"] = options.judge_model
        yield to_json({"custom_id": f"question-{n}", "request": request, "sample": one.answer_id.sample})


def _build_material(rows: _CalibrationRows, options: CalibrationOptions, settings: AskSettings | None) -> Material:
    rubric: Rubric | None = None if settings is None else settings.rubric
    options_values: dict[str, JsonValue] = {
        "rubric": None if rubric is None else rubric.model_dump(mode="json"),
        "judges": None if settings is None else settings.mode,
        "judge_model": options.judge_model,
        "repeats": options.repeats,
        "method": options.method,
        "seed": options.seed,
        "guarantee": options.guarantee,
    }
    predictions = _dump_lines(rows.predictions) if settings is None else None
    return Material(len(rows.items), _dump_lines(list(rows.items.values())), predictions, options_values)


def _dump_lines(models: Sequence[LabelledItem] | Sequence[Prediction]) -> bytes:
    return b"\n".join([one.model_dump_json().encode() for one in models])
