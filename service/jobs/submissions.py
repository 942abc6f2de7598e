"""Read submitted batches: their options, their items, and the problems of each.

Every item is checked before anything is stored, and all problems are reported together. Only the custom_ids of the items
stay in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple

from pydantic import BeforeValidator, ConfigDict, Field, JsonValue, TypeAdapter, WithJsonSchema
from pydantic_core import to_json

from service.asking.provider_batches import PROVIDERS, is_batchable
from service.core.json.members import find_text
from service.core.models.kinds import FrozenModel
from service.core.models.validation import validate
from service.core.report import JudgeMode
from service.engine import Engine
from service.errors import BadLinesError, InputError, MalformedError, Problem, TooLargeError
from service.jobs.chunking import Cutter
from service.problems import Place
from service.reading.places import BadRecord
from service.reading.request import CustomId, ScoreRequest, read_request_trace, refuse_other_shape
from service.reading.strict_json import Limits
from service.reading.trace_files import scan_lines
from service.store.jobs.job import Rejected, SkippedItems

LOG = logging.getLogger("callgrade.batches")

MAX_LISTED_PROBLEMS = 1_000
"""How many problems, or skipped lines, are listed."""

MAX_LINE_PROBLEMS = 10
"""How many problems of one line are listed."""

MAX_TAGS = 64

MAX_QUESTION_LIMIT = 10**12
"""The largest question limit that a batch may have."""


class BatchItem(ScoreRequest):
    """One item of a batch: a score request with a name. Fields that it omits come from the batch's options."""

    custom_id: CustomId | None = None
    """Its name in the results, unique in the batch. Absent: `item-` and its position, from 0."""


def _read_tags(value: object) -> object:
    """Read tags as a query writes them: key:value with commas between, each key once."""
    if not isinstance(value, str):
        return value
    pairs = [part.partition(":") for part in value.split(",")]
    tags = {key: text for key, _, text in pairs}
    if not all(key and colon for key, colon, _ in pairs) or len(tags) < len(pairs):
        raise ValueError("expected key:value with commas between, each key once")
    return tags


Tags = Annotated[
    dict[str, str],
    Field(max_length=MAX_TAGS),
    BeforeValidator(_read_tags),
    WithJsonSchema({"type": "string", "pattern": "^[^:,]+:[^,]*$", "examples": ["suite:nightly"]}),
]


class RunOptions(FrozenModel):
    """The options that every job has, as a query gives them."""

    model_config = ConfigDict(strict=False, use_attribute_docstrings=True, defer_build=False)

    name: str = Field(default="", max_length=256)
    """A name for people."""
    rubric: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """The id of the rubric of items that name none. Absent: four_step."""
    judges: JudgeMode | None = None
    """Whether judges are asked, as in a score request."""
    judge_model: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """The model that judges use where they name none."""
    tags: Tags = Field(default_factory=dict[str, str])
    """Labels of the batch and of all its items, key:value with commas between; an item's own take precedence."""
    budget_usd: Annotated[float, Field(ge=0)] | None = None
    """The most that the judges of all items may cost together. The batch pauses when it is reached."""
    max_questions: Annotated[int, Field(ge=0, le=MAX_QUESTION_LIMIT)] | None = None
    """The most requests to the judges of all items; cached answers need none. The batch pauses when it is reached."""
    deadline_hours: Annotated[float, Field(gt=0, le=8_760)] | None = None
    """Hours within which the batch must finish; items not run by then are never run."""
    webhook: Annotated[str, Field(min_length=1, max_length=2_048)] | None = None
    """The URL to notify when the batch ends; the settings must allow its host."""


class BatchOptions(RunOptions):
    """How a batch is run, and the defaults of its items."""

    on_judge_error: Literal["partial", "error"] | None = None
    """What to do when a judge gives no verdict: `partial` reports what stands without it, `error` fails the item."""
    skip_invalid: bool = False
    """Whether to skip items that cannot be scored. If not, one of them rejects the whole batch."""
    judging: Literal["live", "batch", "auto"] = "live"
    """How judges are asked: `batch` uses the batch endpoints of providers, at half the price and within a day; `auto` likewise
    where that saves enough questions to be worth the wait.
    """
    judging_hours: Annotated[float, Field(gt=0, le=720)] = 24.0
    """Hours after which a provider's batch is cancelled, and what it has not answered is asked otherwise."""
    unanswered: Literal["live", "open"] = "live"
    """What becomes of questions that a provider's batch does not answer: asked `live`, or left `open`."""
    dry_run: bool = False
    """Whether only to report how many questions judges would get, and their cost."""


ITEM: TypeAdapter[BatchItem] = TypeAdapter(BatchItem)

JUDGING_OPTIONS = {"judging", "judging_hours", "unanswered"}
"""The options of asking through the batch endpoints of providers."""

ITEM_OPTIONS = {"rubric", "judges", "judge_model", "on_judge_error"}
"""The options that are also fields of an item."""

RESTRICTED_FIELDS = frozenset({"rubric", "judges", "judge_model", "sandbox", "budget_usd"})
"""The fields of an item that settings may forbid."""


def _read_item(value: JsonValue) -> BatchItem:
    """Read one item; raise InputError with each problem, or with what the value looks like instead."""
    try:
        return validate(ITEM, value)
    except InputError:
        refuse_other_shape(value)
        raise


class SubmittedEntry(NamedTuple):
    """One item as sent; problems point to it by its line."""

    line: int
    """Its line, from 1."""
    value: JsonValue | InputError


def read_line_entries(stream: BinaryIO, limits: Limits) -> Iterator[SubmittedEntry]:
    """Read the items of JSON Lines; `limits` apply to each."""
    for record in scan_lines(stream, limits=limits, name="body"):
        if record.place.line is not None:  # else the body is empty
            yield SubmittedEntry(record.place.line, record.error if isinstance(record, BadRecord) else record.value)


class BatchDefaults:
    """A batch's options, and the defaults that they give its items."""

    def __init__(self, options: BatchOptions, engine: Engine) -> None:
        """Raise InputError with pointers for options that cannot be used."""
        self.options = options
        self.given: dict[str, Any] = options.model_dump(include=ITEM_OPTIONS, exclude_none=True)
        self.judging: dict[str, Any] = options.model_dump(include=JUDGING_OPTIONS) if options.judging != "live" else {}
        if self.judging and options.deadline_hours is not None and options.deadline_hours <= options.judging_hours:
            raise InputError.at(
                "/judging_hours", "expected less than deadline_hours: what is unanswered is asked after it"
            )
        model = options.judge_model or (engine.judging.judges.model if engine.judging else "")
        if options.judging == "batch" and not is_batchable(model):
            raise InputError.at("/judging", f"only models of {', '.join(PROVIDERS)} are asked in batches, not {model}")
        self._engine = engine
        plain = ScoreRequest.model_construct(**self.given)
        engine.admit(plain)
        self._waits = engine.must_wait(plain)

    def fill_in(self, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Complete a parsed item with the batch's defaults."""
        tags = value.get("tags")
        merged = {**self.options.tags, **(tags if isinstance(tags, dict) else {})}
        return {**self.given, **value, "tags": merged} if merged else {**self.given, **value}

    def check(self, item: BatchItem) -> bool:
        """Whether an item waits for judges or a sandbox. Raises InputError if it cannot be scored with these options."""
        named_fields, waits = item.model_fields_set, self._waits
        if named_fields & RESTRICTED_FIELDS:
            others = {name: value for name, value in self.given.items() if name not in named_fields}
            complete_item = item.model_copy(update=others)
            self._engine.admit(complete_item)
            waits = self._engine.must_wait(complete_item)
        if len(self.options.tags | item.tags) > MAX_TAGS:
            raise InputError.at("/tags", f"more than {MAX_TAGS} together with the batch's own")
        read_request_trace(item)
        return waits


class BadItems:
    """The problems of rejected items; lists the first MAX_LISTED_PROBLEMS and counts the rest."""

    def __init__(self) -> None:
        self.count = 0
        self._problems: list[tuple[int, Problem]] = []

    def add(self, place: int, pointer: str, error: InputError) -> None:
        """Add one bad item. The error lists problems by ascending `place`."""
        self.count += 1
        if len(self._problems) <= MAX_LISTED_PROBLEMS:
            self._problems += [
                (place, Problem(pointer + one.path, one.message)) for one in error.problems[:MAX_LINE_PROBLEMS]
            ]

    def build_error(self) -> BadLinesError:
        """Build the error that lists them."""
        found = [problem for _, problem in sorted(self._problems, key=lambda one: one[0])]
        more = f"; the first {MAX_LISTED_PROBLEMS} problems are named" if len(found) > MAX_LISTED_PROBLEMS else ""
        return BadLinesError(found[:MAX_LISTED_PROBLEMS], f"{self.count} of the items cannot be taken{more}")


class ItemIntake:
    """One pass over the items of a batch: good ones go to a cutter, bad ones are collected."""

    def __init__(self, defaults: BatchDefaults, cutter: Cutter, *, max_items: int) -> None:
        self._defaults = defaults
        self._skips = defaults.options.skip_invalid
        self._cutter = cutter
        self._max_items = max_items
        self._taken = 0
        self._seen: dict[str, int] = {}
        """The line of each custom_id; negative once a duplicate was reported there."""
        self._bad = BadItems()
        self._skipped: list[Rejected] = []

    def take(self, entries: Iterable[SubmittedEntry]) -> SkippedItems:
        """Take all items, and return those that were skipped.

        Raises BadLinesError if an item is bad and none may be skipped, or if none is good; TooLargeError if there are too many.
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
            raise MalformedError.at("", "there are no items")
        return SkippedItems(self._bad.count, tuple(self._skipped))

    def _add(self, entry: SubmittedEntry) -> None:
        value = entry.value
        if isinstance(value, InputError):
            raise value
        named, waits = self._check(value, entry.line)
        custom_id = named or f"item-{self._taken}"
        if custom_id in self._seen:
            raise self._build_duplicate_error(custom_id)
        self._seen[custom_id] = entry.line
        self._taken += 1
        if self._skips or not self._bad.count:
            self._cutter.add(self._build_line(custom_id, value), waits=waits)

    def _check(self, value: JsonValue, line: int) -> tuple[str | None, bool]:
        """Return an item's name and whether it waits. A fault of ours here is its outcome later, and spoils no other."""
        try:
            item = _read_item(value)
            return item.custom_id, self._defaults.check(item)
        except InputError:
            raise
        except Exception:
            LOG.exception("unhandled error in item %d of a submission", line)
            return find_text(value, "custom_id") if isinstance(value, dict) else None, True

    def _build_line(self, custom_id: str, value: Any) -> bytes:
        own = {name: field for name, field in value.items() if name != "custom_id"}
        return to_json({"custom_id": custom_id, "request": self._defaults.fill_in(own)})

    def _build_duplicate_error(self, custom_id: str) -> InputError:
        """Build the error of a duplicate custom_id; the earlier item is rejected as well unless bad items are skipped."""
        before = self._seen[custom_id]
        if before > 0 and not self._skips:
            self._seen[custom_id] = -before
            self._reject(before, InputError.at("/custom_id", "a later item has the same one"))
        return InputError.at("/custom_id", f"the same as that of /{abs(before)}")

    def _reject(self, line: int, error: InputError) -> None:
        self._bad.add(line, f"/{line}", error)
        if self._skips and len(self._skipped) < MAX_LISTED_PROBLEMS:
            problems = [Place(one.path, one.message) for one in error.problems[:MAX_LINE_PROBLEMS]]
            self._skipped.append(Rejected(line, tuple(problems)))
