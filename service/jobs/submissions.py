"""What is submitted as a batch: its options, its items, and what is wrong with them.

Every item is looked at before anything is kept; what is wrong is told of all of them at once. Of the items only their
custom_ids are held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple

from pydantic import Field, JsonValue, TypeAdapter
from pydantic_core import to_json

from service.core.models.kinds import FrozenModel, Several
from service.core.models.validation import validate
from service.core.report import JudgeMode
from service.engine import Engine
from service.errors import BadLinesError, InputError, MalformedError, Problem, TooLargeError
from service.jobs.chunking import Cutter
from service.problems import Place
from service.reading.strict_json import Limits, parse
from service.reading.trace_files import BadRecord, scan_lines
from service.request import CustomId, RubricChoice, ScoreRequest, read_request_trace, refuse_other_shape
from service.store.jobs.job import Rejected, SkippedItems

LISTED = 1_000
"""How many problems, or lines left out, are named."""

OF_ONE = 10
"""How many problems of one line are named."""

MAX_TAGS = 64

MAX_QUESTIONS_OF_ALL = 10**12
"""The largest number of questions that a batch may be limited to."""


class BatchItem(ScoreRequest):
    """One item of a batch: a score request with a name. What it does not say is filled in from the batch's options."""

    custom_id: CustomId | None = None
    """Its name in the results; no other item of the batch has it. Absent: `item-` and its position, from 0."""


class RunOptions(FrozenModel):
    """What can be said of any batch."""

    name: str = Field(default="", max_length=256)
    """For people to know it by."""
    rubric: RubricChoice | None = None
    """A rubric as of a score request; in a query, its id. Absent: four_step."""
    judges: JudgeMode | None = None
    """Whether judges are asked, as of a score request."""
    judge_model: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """The model that judges where a judge names none."""
    tags: Annotated[dict[str, str], Field(max_length=MAX_TAGS)] = Field(default_factory=dict[str, str])
    """Labels of the batch and of all its items; an item's own go first."""
    budget_usd: Annotated[float, Field(ge=0)] | None = None
    """The most that the judges of all items may cost together. The batch pauses where it is reached."""
    max_questions: Annotated[int, Field(ge=0, le=MAX_QUESTIONS_OF_ALL)] | None = None
    """The most requests to the judges of all items; answers from the cache take none. The batch pauses there too."""
    deadline_hours: Annotated[float, Field(gt=0, le=8_760)] | None = None
    """Time in which the batch must be done; items not run by then are not run any more."""
    webhook: Annotated[str, Field(min_length=1, max_length=2_048)] | None = None
    """Where the end of the batch is told: a URL whose host the settings allow."""


class BatchOptions(RunOptions):
    """How a batch is run, and what its items have that do not say otherwise."""

    on_judge_error: Literal["partial", "error"] | None = None
    """What a judge that gives no verdict does: `partial` reports what stands without it, `error` fails the item."""
    skip_invalid: bool = False
    """Whether items that cannot be scored are left out. If not, one of them refuses the batch."""
    dry_run: bool = False
    """Whether only to tell what judges would be asked, and for how much."""


class BatchRequest(BatchOptions):
    """A batch as one JSON document."""

    items: Several[BatchItem] = Field(min_length=1)


OPTIONS: TypeAdapter[BatchOptions] = TypeAdapter(BatchOptions)
ITEM: TypeAdapter[BatchItem] = TypeAdapter(BatchItem)

FILLED_IN = ("rubric", "judges", "judge_model", "on_judge_error")
"""The options that are fields of an item too."""

ADMITTED = frozenset({"rubric", "judges", "judge_model", "sandbox", "budget_usd"})
"""What an item may say that can be allowed or not."""


def _read_item(value: JsonValue) -> BatchItem:
    """One item; InputError with each problem, or with what it is instead."""
    try:
        return validate(ITEM, value)
    except InputError:
        refuse_other_shape(value)
        raise


class SubmittedEntry(NamedTuple):
    """One item as it was sent."""

    line: int
    """Its line, or its position in a list, from 1."""
    value: JsonValue | InputError


PointerOf = Callable[[int], str]
"""The pointer of an item by its line."""


def point_to_line(line: int) -> str:
    """The pointer of an item of JSON Lines."""
    return f"/{line}"


def point_to_item(line: int) -> str:
    """The pointer of an item of a document."""
    return f"/items/{line - 1}"


def read_line_entries(stream: BinaryIO, limits: Limits) -> Iterator[SubmittedEntry]:
    """The items of JSON Lines; `limits` holds for each."""
    for found in scan_lines(stream, limits=limits, name="body"):
        if found.place.line is not None:  # else there is none at all
            yield SubmittedEntry(found.place.line, found.error if isinstance(found, BadRecord) else found.value)


def read_document_entries(data: bytes, limits: Limits) -> tuple[Mapping[str, JsonValue], list[SubmittedEntry]]:
    """The options and the items of one JSON document, `{"items": [...], ...}`. InputError where it is none."""
    body = parse(data, limits)
    if not isinstance(body, dict):
        raise InputError.at("", "expected an object")
    items = body.pop("items", None)
    if not isinstance(items, list):
        raise InputError.at("/items", "expected a list of items")
    return body, [SubmittedEntry(n, item) for n, item in enumerate(items, start=1)]


class Defaults:
    """The options of a batch as its items are given them."""

    def __init__(self, given: Mapping[str, JsonValue], engine: Engine) -> None:
        """InputError for options that cannot be used, by their pointers."""
        self.options = validate(OPTIONS, dict(given))
        self.given = {name: given[name] for name in FILLED_IN if given.get(name) is not None}
        read = {name: getattr(self.options, name) for name in self.given}
        self._fields: dict[str, Any] = read
        self._engine = engine
        plain = ScoreRequest.model_construct(**read)
        engine.admit(plain)
        self._waits = engine.must_wait(plain)

    def fill_in(self, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """An item as parsed, with what it does not say."""
        tags = value.get("tags")
        merged = {**self.options.tags, **(tags if isinstance(tags, dict) else {})}
        return {**self.given, **value, "tags": merged} if merged else {**self.given, **value}

    def check(self, item: BatchItem) -> bool:
        """Whether it waits for judges or a sandbox. InputError for an item that cannot be scored with these options."""
        said, waits = item.model_fields_set, self._waits
        if said & ADMITTED:
            others = {name: value for name, value in self._fields.items() if name not in said}
            whole = item.model_copy(update=others)
            self._engine.admit(whole)
            waits = self._engine.must_wait(whole)
        if len(self.options.tags | item.tags) > MAX_TAGS:
            raise InputError.at("/tags", f"with the batch's own more than {MAX_TAGS}")
        read_request_trace(item)
        return waits


class BadItems:
    """What is wrong with the items that cannot be taken, as far as it is named."""

    def __init__(self) -> None:
        self.count = 0
        self._found: list[tuple[int, Problem]] = []

    def add(self, place: int, pointer: str, error: InputError) -> None:
        """One more of them. Those of a lower `place` are named first."""
        self.count += 1
        if len(self._found) <= LISTED:
            self._found += [(place, Problem(pointer + one.path, one.message)) for one in error.problems[:OF_ONE]]

    def build_error(self) -> BadLinesError:
        """The error that names them."""
        found = [problem for _, problem in sorted(self._found, key=lambda one: one[0])]
        more = f"; the first {LISTED} problems are named" if len(found) > LISTED else ""
        return BadLinesError(found[:LISTED], f"{self.count} of the items cannot be taken{more}")


class ItemIntake:
    """One pass over the items of a batch: the good ones go to a cutter."""

    def __init__(
        self, defaults: Defaults, cutter: Cutter, *, max_items: int, pointer_of: PointerOf = point_to_line
    ) -> None:
        self._defaults = defaults
        self._skips = defaults.options.skip_invalid
        self._cutter = cutter
        self._max_items = max_items
        self._pointer_of = pointer_of
        self._taken = 0
        self._seen: dict[str, int] = {}
        """The line of each custom_id; negative once it is known to be there twice."""
        self._bad = BadItems()
        self._left_out: list[Rejected] = []

    def take(self, entries: Iterable[SubmittedEntry]) -> SkippedItems:
        """Takes all items, and gives those that were left out.

        BadLinesError where any is wrong and none may be left out, or where none is good; TooLargeError for too many.
        """
        for count, entry in enumerate(entries, start=1):
            if count > self._max_items:
                raise TooLargeError.at("", f"more than {self._max_items} items in one batch")
            try:
                self._add(entry)
            except InputError as error:
                self._reject(entry.line, error)
        self._cutter.finish()
        if self._bad.count and not (self._skips and self._taken):
            raise self._bad.build_error()
        if not self._taken:
            raise MalformedError.at("", "there is no item in it")
        return SkippedItems(self._bad.count, tuple(self._left_out))

    def _add(self, entry: SubmittedEntry) -> None:
        value = entry.value
        if isinstance(value, InputError):
            raise value
        item = _read_item(value)
        waits = self._defaults.check(item)
        custom_id = item.custom_id or f"item-{self._taken}"
        if custom_id in self._seen:
            raise self._build_twice_error(custom_id)
        self._seen[custom_id] = entry.line
        self._taken += 1
        if self._skips or not self._bad.count:
            self._cutter.add(self._build_line(custom_id, value), waits=waits)

    def _build_line(self, custom_id: str, value: Any) -> bytes:
        own = {name: said for name, said in value.items() if name != "custom_id"}
        return to_json({"custom_id": custom_id, "request": self._defaults.fill_in(own)})

    def _build_twice_error(self, custom_id: str) -> InputError:
        """The error of an item with the custom_id of another, which is wrong as well unless it may stay."""
        before = self._seen[custom_id]
        if before > 0 and not self._skips:
            self._seen[custom_id] = -before
            self._reject(before, InputError.at("/custom_id", "a later item has the same"))
        return InputError.at("/custom_id", f"the same as of {self._pointer_of(abs(before))}")

    def _reject(self, line: int, error: InputError) -> None:
        self._bad.add(line, self._pointer_of(line), error)
        if self._skips and len(self._left_out) < LISTED:
            problems = [Place(one.path, one.message) for one in error.problems[:OF_ONE]]
            self._left_out.append(Rejected(line, tuple(problems)))
