"""What is submitted as a calibration: labelled items, how their judge is asked and fitted, or what it is recorded to have said.

Every item is looked at before anything is kept; what is wrong is told of all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import Field, JsonValue, TypeAdapter
from pydantic_core import to_json

from service.calibration.labels import Key, LabelledItem
from service.calibration.predictions import Prediction
from service.calibration.splits import SEED
from service.core.judging.fits import Method
from service.core.models.kinds import Several
from service.core.models.validation import validate
from service.core.rubric import Rubric
from service.engine import Engine
from service.errors import InputError, MalformedError, TooLargeError
from service.jobs.admission import JobBounds
from service.jobs.chunking import Cutter
from service.jobs.predicting import Asking, ItemQuestion, build_request, check_item
from service.jobs.submissions import BadItems, PointerOf, RunOptions, SubmittedEntry, point_to_line
from service.request import ScoreRequest
from service.store.jobs.submission import Material

MAX_BYTES = 64 * 2**20
"""Largest body, unpacked: labelled items are held in memory."""

RUBRIC = "four_step"
"""Whose judges are asked where nothing is said."""


class CalibrationOptions(RunOptions):
    """How labelled items are judged, and how that is fitted."""

    repeats: Annotated[int, Field(ge=1, le=10)] = 1
    """How many answers each item is to have: those beyond the first tell how often a judge changes its mind."""
    method: Literal["auto", Method] = "auto"
    """The map from a judge's value to a probability. auto: Platt below 300 labels, isotonic from there on."""
    seed: Annotated[str, Field(max_length=256)] = SEED
    """What the split into fitted and held-out items is made with."""
    guarantee: Annotated[float, Field(ge=0.5, lt=1)] | None = None
    """The share of accepted verdicts that is to agree with the labels. Absent: the fits promise nothing."""
    cascade: Annotated[Several[str], Field(max_length=10)] = ()
    """Judges by name, in order: each is asked of what the one before leaves. Two or more, with `guarantee`."""


class CalibrationRequest(CalibrationOptions):
    """A calibration as one JSON document."""

    items: Several[LabelledItem] = Field(min_length=1)
    predictions: Several[Prediction] = ()
    """What judges are recorded to have said of them. Where there is any, no judge is asked."""


OPTIONS: TypeAdapter[CalibrationOptions] = TypeAdapter(CalibrationOptions)
ITEM: TypeAdapter[LabelledItem] = TypeAdapter(LabelledItem)
PREDICTION: TypeAdapter[Prediction] = TypeAdapter(Prediction)


class CalibrationRow(NamedTuple):
    """One labelled item or prediction as it was sent, with its pointer in the body."""

    pointer: str
    value: JsonValue | InputError
    predicted: bool


class CalibrationDraft:
    """A calibration: labelled items, each asked about as often as `repeats` says, or recorded predictions."""

    dry = False

    def __init__(self, given: dict[str, JsonValue], engine: Engine, bounds: JobBounds) -> None:
        predictions = given.pop("predictions", [])
        if not isinstance(predictions, list):
            raise InputError.at("/predictions", "expected a list of predictions")
        self._predictions = predictions
        self.options = validate(OPTIONS, given)
        if self.options.cascade and (self.options.guarantee is None or len(self.options.cascade) < 2):
            raise InputError.at("/cascade", "expected two judges or more, and a guarantee")
        self._engine = engine
        self._max_items = bounds.max_items

    def take(self, entries: Iterable[SubmittedEntry], cutter: Cutter, pointer_of: PointerOf) -> dict[str, Any]:
        """Cuts the items, unless predictions are recorded."""
        found = _CalibrationRows()
        found.read(self._list_rows(entries, pointer_of))
        asking = None if found.predictions else self._choose_asking()
        if asking is not None:
            found.check(asking)
        found.refuse()
        if asking is not None:
            self._cut(found, asking, cutter)
        return {"material": _build_material(found, self.options, asking)}

    def _list_rows(self, entries: Iterable[SubmittedEntry], pointer_of: PointerOf) -> Iterator[CalibrationRow]:
        """The rows of a body; of JSON Lines, a line with `raw` is a prediction."""
        mixed = pointer_of is point_to_line
        for line, value in entries:
            yield CalibrationRow(pointer_of(line), value, mixed and isinstance(value, dict) and "raw" in value)
        for n, value in enumerate(self._predictions):
            yield CalibrationRow(f"/predictions/{n}", value, predicted=True)

    def _choose_asking(self) -> Asking:
        """Who is asked, and how; InputError where nobody can be."""
        options = self.options
        fields: dict[str, Any] = {"rubric": options.rubric or RUBRIC, "judges": options.judges}
        request = ScoreRequest.model_construct(**fields, judge_model=options.judge_model)
        self._engine.admit(request)
        mode = self._engine.choose_mode(request)
        if mode in ("off", "none"):
            raise InputError.at("/judges", "a judge is needed, or predictions; expected cached, live or fresh")
        return Asking(self._engine.registry.find(fields["rubric"]), mode, options.repeats)

    def _cut(self, found: _CalibrationRows, asking: Asking, cutter: Cutter) -> None:
        questions = asking.list_questions(list(found.items.values()))
        if len(questions) > self._max_items:
            raise TooLargeError.at("", f"more than {self._max_items} questions in one calibration")
        for line in _build_lines(questions, asking, self.options):
            cutter.add(line)
        cutter.finish()


class _CalibrationRows:
    """The rows of a body as far as they can be used, and what is wrong with the others."""

    def __init__(self) -> None:
        self.items: dict[Key, LabelledItem] = {}
        self.predictions: list[Prediction] = []
        self._pointers: dict[Key, str] = {}
        self._said: dict[tuple[object, ...], str] = {}
        self._bad = BadItems()

    def read(self, rows: Iterable[CalibrationRow]) -> None:
        """Takes all rows."""
        for row in rows:
            try:
                if isinstance(row.value, InputError):
                    raise row.value
                self._add_prediction(row) if row.predicted else self._add_item(row)
            except InputError as error:
                self._bad.add(0, row.pointer, error)

    def check(self, asking: Asking) -> None:
        """Looks whether a judge can be asked about each item."""
        for key, item in self.items.items():
            try:
                check_item(item, asking)
            except InputError as error:
                self._bad.add(0, self._pointers[key], error)

    def refuse(self) -> None:
        """BadLinesError where anything is wrong, MalformedError where there is nothing at all."""
        if self._bad.count:
            raise self._bad.build_error()
        if not self.items:
            raise MalformedError.at("", "there is no labelled item in it")

    def _add_item(self, row: CalibrationRow) -> None:
        item = validate(ITEM, row.value)
        if item.key in self.items:
            told = f"the same id and criterion as of {self._pointers[item.key]}"
            raise InputError.at("/id", told)
        self.items[item.key], self._pointers[item.key] = item, row.pointer

    def _add_prediction(self, row: CalibrationRow) -> None:
        said = validate(PREDICTION, row.value)
        key = (said.answer_id, said.binding)
        if key in self._said:
            raise InputError.at("/sample", f"the same answer of the same judge as of {self._said[key]}")
        self._said[key] = row.pointer
        self.predictions.append(said)


def _build_lines(questions: Iterable[ItemQuestion], asking: Asking, options: CalibrationOptions) -> Iterator[bytes]:
    """The questions as the items of a batch."""
    for n, one in enumerate(questions):
        request = cast("dict[str, JsonValue]", build_request(one, asking))
        if options.judge_model is not None:
            request["judge_model"] = options.judge_model
        yield to_json({"custom_id": f"question-{n}", "request": request, "sample": one.said.sample})


def _build_material(found: _CalibrationRows, options: CalibrationOptions, asking: Asking | None) -> Material:
    rubric: Rubric | None = None if asking is None else asking.rubric
    told: dict[str, JsonValue] = {
        "rubric": None if rubric is None else rubric.model_dump(mode="json"),
        "judges": None if asking is None else asking.mode,
        "judge_model": options.judge_model,
        "repeats": options.repeats,
        "method": options.method,
        "seed": options.seed,
        "guarantee": options.guarantee,
        "cascade": list(options.cascade),
    }
    predictions = _dump_lines(found.predictions) if asking is None else None
    return Material(len(found.items), _dump_lines(list(found.items.values())), predictions, told)


def _dump_lines(models: Sequence[LabelledItem] | Sequence[Prediction]) -> bytes:
    return b"\n".join([one.model_dump_json().encode() for one in models])
