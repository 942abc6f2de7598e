"""Read submitted batches: their options, their items, and the problems of each.

Every item is checked before anything is stored, and all problems are reported together. Only the custom_ids of the items
stay in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, BinaryIO, Literal, NamedTuple, cast

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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBounds:
    """How much a job may hold, and how it is cut into chunks."""

    limits: Limits
    """Limits for each item."""
    chunk_items: int
    """Items per chunk."""
    max_items: int
    default_hours: float
    """Hours until the deadline of a batch that names none."""
    max_usd: float | None = None
    """The most that the judges of a batch may cost; None: unlimited."""
    max_questions: int | None = None
    """The most requests to judges in a batch; None: unlimited."""

    def admit_spending(self, usd: float | None, questions: int | None) -> None:
        """Raise InputError for a budget or a limit of questions above what a batch may have."""
        if usd is not None and self.max_usd is not None and usd > self.max_usd:
            message = f"expected at most {self.max_usd:g} (CALLGRADE_BATCH_MAX_USD), not {usd:g}"
            raise InputError.at("/budget_usd", message)
        if questions is not None and self.max_questions is not None and questions > self.max_questions:
            message = f"expected at most {self.max_questions} (CALLGRADE_BATCH_MAX_QUESTIONS), not {questions}"
            raise InputError.at("/max_questions", message)


class BadItems:
    """The problems of rejected items; lists the first MAX_LISTED_PROBLEMS and counts the rest."""

    def __init__(self) -> None:
        self.count = 0
        self.listed: list[Rejected] = []

    def add(self, line: int, error: InputError) -> None:
        """Add one bad item."""
        self.count += 1
        if len(self.listed) <= MAX_LISTED_PROBLEMS:
            problems = [Place(one.path, one.message) for one in error.problems[:MAX_LINE_PROBLEMS]]
            self.listed.append(Rejected(line, tuple(problems)))

    def build_error(self) -> BadLinesError:
        """Build the error that lists them, by line."""
        bad = sorted(self.listed, key=lambda one: one.line)
        found = [Problem(f"/{one.line}{place.pointer}", place.detail) for one in bad for place in one.errors]
        more = f"; the first {MAX_LISTED_PROBLEMS} problems are named" if len(found) > MAX_LISTED_PROBLEMS else ""
        return BadLinesError(found[:MAX_LISTED_PROBLEMS], f"{self.count} of the items cannot be taken{more}")


class BatchDraft:
    """A batch on its way from a body to chunks. Each item is a score request, which the batch's options complete."""

    def __init__(self, options: BatchOptions, engine: Engine, bounds: JobBounds) -> None:
        """Raise InputError with pointers for options that cannot be used."""
        self.dry = options.dry_run
        self._options = options
        self._given: dict[str, Any] = options.model_dump(include=ITEM_OPTIONS, exclude_none=True)
        self._judging: dict[str, Any] = {}
        if options.judging != "live":
            self._judging = options.model_dump(include=JUDGING_OPTIONS)
            if options.deadline_hours is not None and options.deadline_hours <= options.judging_hours:
                raise InputError.at("/judging_hours", "expected less than deadline_hours: the rest is asked afterwards")
        model = options.judge_model or (engine.judging.judges.model if engine.judging else "")
        if options.judging == "batch" and not is_batchable(model):
            raise InputError.at("/judging", f"only models of {', '.join(PROVIDERS)} are asked in batches, not {model}")
        self._engine = engine
        self._max_items = bounds.max_items
        plain = ScoreRequest.model_construct(**self._given)
        engine.admit(plain)
        self._waits = engine.must_wait(plain)
        self._taken = 0
        self._seen: dict[str, int] = {}
        """The line of each custom_id; negative once a duplicate was reported there."""
        self._bad = BadItems()

    def cut(self, entries: Iterable[SubmittedEntry], cutter: Cutter) -> dict[str, Any]:
        """Cut the items, and return the options and the skipped items.

        Raises BadLinesError if an item is bad and none may be skipped, or if none is good; TooLargeError if there are too many.
        """
        for count, (line, value) in enumerate(entries, start=1):
            if count > self._max_items:
                raise TooLargeError.at("", f"more than {self._max_items} items in one batch")
            try:
                self._take(line, value, cutter)
            except InputError as error:
                self._bad.add(line, error)
        cutter.finish()
        if self._bad.count and not (self._options.skip_invalid and self._taken):
            raise self._bad.build_error()
        if not self._taken:
            raise MalformedError.at("", "there are no items")
        skipped = SkippedItems(self._bad.count, tuple(self._bad.listed[:MAX_LISTED_PROBLEMS]))
        return {"options": self._given | self._judging, "skipped_items": skipped}

    def _take(self, line: int, value: JsonValue | InputError, cutter: Cutter) -> None:
        if isinstance(value, InputError):
            raise value
        try:
            item = validate(ITEM, value)
            named, waits = item.custom_id, self.check(item)
        except InputError:
            refuse_other_shape(value)
            raise
        except Exception:  # a fault of ours here is its outcome later, and spoils no other
            LOG.exception("unhandled error in item %d of a submission", line)
            named, waits = find_text(value, "custom_id") if isinstance(value, dict) else None, True
        custom_id, skips = named or f"item-{self._taken}", self._options.skip_invalid
        if before := self._seen.get(custom_id):
            if before > 0 and not skips:  # the earlier one is rejected as well
                self._seen[custom_id] = -before
                self._bad.add(before, InputError.at("/custom_id", "a later item has the same one"))
            raise InputError.at("/custom_id", f"the same as that of /{abs(before)}")
        self._seen[custom_id] = line
        self._taken += 1
        if skips or not self._bad.count:
            request = self._complete(cast("dict[str, JsonValue]", value))
            cutter.add(to_json({"custom_id": custom_id, "request": request}), waits=waits)

    def _complete(self, value: dict[str, JsonValue]) -> dict[str, JsonValue]:
        own = {name: field for name, field in value.items() if name != "custom_id"}
        tags = own.get("tags")
        merged = {**self._options.tags, **(tags if isinstance(tags, dict) else {})}
        return {**self._given, **own, **({"tags": merged} if merged else {})}

    def check(self, item: BatchItem) -> bool:
        """Whether an item waits for judges or a sandbox. Raises InputError if it cannot be scored with these options."""
        named_fields, waits = item.model_fields_set, self._waits
        if named_fields & RESTRICTED_FIELDS:
            others = {name: value for name, value in self._given.items() if name not in named_fields}
            complete_item = item.model_copy(update=others)
            self._engine.admit(complete_item)
            waits = self._engine.must_wait(complete_item)
        if len(self._options.tags | item.tags) > MAX_TAGS:
            raise InputError.at("/tags", f"more than {MAX_TAGS} together with the batch's own")
        read_request_trace(item)
        return waits
