"""Labelled sets: what people (or a known right answer) said of items, read from JSON Lines or CSV with line numbers."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue, TypeAdapter, ValidationError, model_validator

from service.core.json.parsing import UnreadableError, parse
from service.core.judging.fits import Origin
from service.core.models.kinds import FrozenModel, Some
from service.core.models.lazy import lazy
from service.core.models.validation import list_problems
from service.core.rubric import Stage
from service.errors import InputError, Problem

Split = Literal["fit", "test"]
Key = tuple[str, str]
"""The id and the criterion of an item."""

MAX_PROBLEMS = 50
"""Reading stops where so many things are wrong."""

_WORDS = {"pass": True, "fail": False, "true": True, "false": False, "1": True, "0": False}


def _read_verdict(given: object) -> object:
    """1 and 0, "pass" and "fail" as they are often written."""
    if isinstance(given, str):
        return _WORDS.get(given.strip().casefold(), given)
    return bool(given) if type(given) is int and given in (0, 1) else given


def _is_unsaid(decides: object) -> bool:
    """Digests of sets in which no label decides are what they always were."""
    return not decides


class AnnotatorLabel(FrozenModel):
    """What one annotator said of an item."""

    annotator: str = Field(min_length=1)
    label: Annotated[bool, BeforeValidator(_read_verdict)]
    """Whether the item passes; also 1 and 0, "pass" and "fail"."""
    note: str = ""
    decides: bool = Field(default=False, exclude_if=_is_unsaid)
    """Whether it settles what annotators differ on: then it is the item's label, and no opinion beside theirs."""


class LabelledItem(FrozenModel):
    """One item of one criterion with its labels."""

    id: str = Field(min_length=1)
    criterion: str = Field(min_length=1)
    step: Stage | None = None
    trace: dict[str, JsonValue] | None = None
    """A trace as POST /v1/score takes it; or else `payload` (what the tool returned) and `answer` (what the model said)."""
    payload: JsonValue = None
    answer: str | None = None
    labels: Some[AnnotatorLabel]
    source: str = ""
    group: str = Field(min_length=1)
    """Items of one payload or conversation: they are never on both sides of a split."""
    split: Split | None = None
    """Where it must go; absent: chance decides, group by group."""
    origin: Origin = "human"
    stratum: str = ""
    """Who wrote it, or another thing that would explain labels by itself: ranking is also measured within strata."""
    family: str = ""
    """The family of tools it is about."""
    period: str = ""
    """When it was sampled, in any words that sort: a month, a release."""
    run: str = ""
    """The run whose step it is; where set, the calls of the last message of its trace are meant, and it is also told
    which step of a run was the first wrong one."""
    position: int = Field(default=0, ge=0)
    """Where in that run it stands."""

    @model_validator(mode="after")
    def _once_each(self) -> LabelledItem:
        if sum(label.decides for label in self.labels) > 1:
            raise ValueError("two labels decide; one does")
        twice = [name for name, n in Counter(label.annotator for label in self.opinions).items() if n > 1]
        if twice:
            raise ValueError(f"the annotator {twice[0]!r} has two labels; one annotator is not two opinions")
        return self

    @property
    def key(self) -> Key:
        """What predictions are matched by."""
        return self.id, self.criterion

    @property
    def opinions(self) -> tuple[AnnotatorLabel, ...]:
        """What annotators say by themselves: all labels but one that decides."""
        return tuple([label for label in self.labels if not label.decides])

    @property
    def counts(self) -> Counter[bool]:
        """How many annotators pass and fail it."""
        return Counter(label.label for label in self.opinions)

    @lazy
    def passes(self) -> bool:
        """What was decided, else what most annotators say; where they are even, what the first one says."""
        for label in self.labels:
            if label.decides:
                return label.label
        counts = self.counts
        return self.labels[0].label if counts[True] == counts[False] else counts[True] > counts[False]


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Items in the order of their keys, and the line of each in its source."""

    items: tuple[LabelledItem, ...]
    lines: Mapping[Key, int]
    source: str


def find_origin(items: Iterable[LabelledItem]) -> Origin:
    """What the labels of these items are at worst."""
    found = {item.origin for item in items}
    return "constructed" if "constructed" in found else "gold" if "gold" in found else "human"


def build_labelled_set(found: Iterable[tuple[int, LabelledItem]], *, source: str) -> LabelledSet:
    """The set of items with their lines; InputError for none, and for an item that stands there twice."""
    items: dict[Key, LabelledItem] = {}
    lines: dict[Key, int] = {}
    for line, item in found:
        if item.key in items:
            raise InputError([_build_repeat_problem(line, item, lines[item.key])])
        items[item.key], lines[item.key] = item, line
    if not items:
        raise InputError.at(source, "no labelled item")
    return LabelledSet(tuple([items[key] for key in sorted(items)]), lines, source)


def join_held_out(fitted: LabelledSet, held_out: LabelledSet) -> LabelledSet:
    """One set in which all items of the first are fitted and all of the second are held out, whatever they say of it.

    InputError for an item or a group that is in both.
    """
    twice = sorted(fitted.lines.keys() & held_out.lines.keys())
    if twice:
        raise InputError.at(
            held_out.source, f"{twice[0][0]!r} is in {fitted.source} too: it cannot be held out from itself"
        )
    groups = {item.group for item in fitted.items}
    shared = sorted({item.group for item in held_out.items} & groups)
    if shared:
        raise InputError.at(held_out.source, f"the group {shared[0]!r} is in {fitted.source} too")
    sides: tuple[tuple[LabelledSet, Split], ...] = ((fitted, "fit"), (held_out, "test"))
    items = [item.model_copy(update={"split": side}) for one, side in sides for item in one.items]
    lines = {**fitted.lines, **held_out.lines}
    return LabelledSet(
        tuple(sorted(items, key=lambda item: item.key)), lines, f"{fitted.source}, held out: {held_out.source}"
    )


def _build_repeat_problem(line: int, item: LabelledItem, first: int) -> Problem:
    return Problem(f"line {line}", f"{item.id!r} was labelled for {item.criterion!r} before, in line {first}")


def read_labels(lines: Iterable[str], *, source: str = "labels") -> LabelledSet:
    """The set that JSON Lines hold. InputError names each line, the place in it and what was expected."""
    return build_labelled_set(read_models(parse_lines(lines), _ITEM), source=source)


def parse_lines(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The object of each line that is not empty, with its number from 1; InputError for a line that holds none."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = parse(line)
        except UnreadableError as error:
            raise InputError.at(f"line {number}", str(error)) from None
        if not isinstance(value, dict):
            raise InputError.at(f"line {number}", "expected a JSON object")
        yield number, value


def read_models(rows: Iterable[tuple[int, dict[str, Any]]], adapter: TypeAdapter[Any]) -> list[tuple[int, Any]]:
    """The model of each row with its line; InputError with the problems of all rows, up to `MAX_PROBLEMS`."""
    read: list[tuple[int, Any]] = []
    problems: list[Problem] = []
    for line, row in rows:
        try:
            read.append((line, adapter.validate_python(row)))
        except ValidationError as error:
            problems += [
                Problem(f"line {line}: {p.path}".removesuffix(": "), p.message) for p in list_problems(error, row)
            ]
        if len(problems) >= MAX_PROBLEMS:
            break
    if problems:
        raise InputError(problems)
    return read


_ITEM: TypeAdapter[LabelledItem] = TypeAdapter(LabelledItem)

ITEM_COLUMNS = (
    "id",
    "criterion",
    "step",
    "payload",
    "answer",
    "source",
    "group",
    "split",
    "origin",
    "stratum",
    "family",
    "period",
    "run",
    "position",
)
LABEL_COLUMNS = ("annotator", "label", "note")
NEEDED = ("id", "criterion", "group", "annotator", "label")


def read_csv(text: str, *, source: str = "labels") -> LabelledSet:
    """The set of a CSV table with a head: a line for each label; lines of one id and criterion are one item.

    InputError for columns that are missing or unknown (line 1), and for the line of an item that contradicts its first one.
    """
    table = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        rows = [(table.line_num, row) for row in table if row]
    except csv.Error as error:
        raise InputError.at(f"line {table.line_num}", f"not CSV: {error}") from None
    head = _read_head(rows)
    merged: dict[tuple[str, ...], tuple[int, dict[str, Any]]] = {}
    for line, row in rows[1:]:
        _merge_cells(line, _read_cells(line, head, row), merged)
    return build_labelled_set(read_models(merged.values(), _ITEM), source=source)


def _read_head(rows: Sequence[tuple[int, list[str]]]) -> list[str]:
    head = [name.strip() for name in rows[0][1]] if rows else []
    missing = [name for name in NEEDED if name not in head]
    unknown = [name for name in head if name not in (*ITEM_COLUMNS, *LABEL_COLUMNS)]
    if missing:
        raise InputError.at("line 1", f"no column {', '.join(missing)}")
    if unknown or len(set(head)) < len(head):
        raise InputError.at(
            "line 1", f"unknown columns: {', '.join(unknown)}" if unknown else "a column stands there twice"
        )
    return head


def _read_cells(line: int, head: list[str], row: list[str]) -> dict[str, str]:
    if len(row) != len(head):
        raise InputError.at(f"line {line}", f"{len(row)} cells, but {len(head)} columns")
    return {name: cell for name, cell in zip(head, row, strict=True) if cell}


def _merge_cells(line: int, cells: dict[str, str], merged: dict[tuple[str, ...], tuple[int, dict[str, Any]]]) -> None:
    label = {name: cells[name] for name in LABEL_COLUMNS if name in cells}
    item: dict[str, Any] = {name: cells[name] for name in ITEM_COLUMNS if name in cells}
    key = (cells.get("id", ""), cells.get("criterion", ""))
    if key not in merged:
        merged[key] = (line, {**item, "labels": [label]})
        return
    first, known = merged[key]
    differing = sorted(name for name, value in item.items() if known.get(name) != value)
    if differing:
        raise InputError.at(f"line {line}: /{differing[0]}", f"differs from line {first}, which is of the same item")
    known["labels"].append(label)
