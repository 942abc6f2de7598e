"""Labelled sets: what people (or a known right answer) say about items, read from JSON Lines or CSV with line numbers."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from operator import not_
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue, TypeAdapter, ValidationError, model_validator

from service.core.json.parsing import UnreadableError, parse
from service.core.judging.fits.fit import Origin
from service.core.models.kinds import FrozenModel, Some
from service.core.models.light import lazy
from service.core.models.validation import list_problems
from service.core.rubric import Stage
from service.errors import InputError, Problem

Split = Literal["fit", "test"]
Key = tuple[str, str]
"""The id and the criterion of an item."""

MAX_PROBLEMS = 50
"""Reading stops after this many problems."""

_VERDICTS = {"pass": True, "fail": False, "true": True, "false": False, "1": True, "0": False}


def _read_verdict(given: object) -> object:
    """Accept 1 and 0, "pass" and "fail" in their usual spellings."""
    if isinstance(given, str):
        return _VERDICTS.get(given.strip().casefold(), given)
    return bool(given) if type(given) is int and given in (0, 1) else given


class AnnotatorLabel(FrozenModel):
    """One annotator's label of an item."""

    annotator: str = Field(min_length=1)
    label: Annotated[bool, BeforeValidator(_read_verdict)]
    """Whether the item passes; also 1 and 0, "pass" and "fail"."""
    note: str = ""
    decides: bool = Field(default=False, exclude_if=not_)
    """Whether it settles a disagreement between annotators: it is then the item's label, and does not count as another
    opinion."""


class LabelledItem(FrozenModel):
    """One item of one criterion with its labels."""

    id: str = Field(min_length=1)
    criterion: str = Field(min_length=1)
    step: Stage | None = None
    trace: dict[str, JsonValue] | None = None
    """A trace as POST /v1/score takes it; instead of it `payload` (what the tool returned) and `answer` (what the model
    said)."""
    payload: JsonValue = None
    answer: str | None = None
    labels: Some[AnnotatorLabel]
    source: str = ""
    group: str = Field(min_length=1)
    """Its payload or conversation. Items of one group are never on both sides of a split."""
    split: Split | None = None
    """The side of the split it must be on; absent: chance decides, group by group."""
    origin: Origin = "human"
    stratum: str = ""
    """Who wrote it, or anything else that could explain labels by itself: ranking is also measured within strata."""
    family: str = ""
    """The family of tools it is about."""
    period: str = ""
    """When it was sampled, in any form that sorts: a month, a release."""
    run: str = ""
    """The run that it is a step of. If set, the item is about the calls of the last message of its trace."""
    position: int = Field(default=0, ge=0)
    """Its position in that run."""

    @model_validator(mode="after")
    def _check_annotators(self) -> LabelledItem:
        if sum(label.decides for label in self.labels) > 1:
            raise ValueError("two labels decide; one does")
        twice = [name for name, n in Counter(label.annotator for label in self.opinions).items() if n > 1]
        if twice:
            raise ValueError(f"the annotator {twice[0]!r} has two labels; one annotator is not two opinions")
        return self

    @property
    def key(self) -> Key:
        """The key that predictions are matched by."""
        return self.id, self.criterion

    @property
    def is_step(self) -> bool:
        """Whether it is a step of a run that was labelled in the service, which names it so when it exports it."""
        return bool(self.run) and self.id == f"{self.run}#{self.position}"

    @property
    def opinions(self) -> tuple[AnnotatorLabel, ...]:
        """The labels of the annotators themselves: all but one that decides."""
        return tuple([label for label in self.labels if not label.decides])

    @property
    def counts(self) -> Counter[bool]:
        """How many annotators pass it, and how many fail it."""
        return Counter(label.label for label in self.opinions)

    @lazy
    def passes(self) -> bool:
        """The deciding label, else the majority; the first label on a tie."""
        for label in self.labels:
            if label.decides:
                return label.label
        counts = self.counts
        return self.labels[0].label if counts[True] == counts[False] else counts[True] > counts[False]


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """Items in the order of their keys, and each item's line in its source."""

    items: tuple[LabelledItem, ...]
    lines: Mapping[Key, int]
    source: str


def find_origin(items: Iterable[LabelledItem]) -> Origin:
    """Return the least trustworthy origin of these items' labels."""
    origins = {item.origin for item in items}
    worst_first: tuple[Origin, ...] = ("constructed", "weak", "gold", "human")
    return next(one for one in worst_first if one in origins or one == "human")


def build_labelled_set(numbered: Iterable[tuple[int, LabelledItem]], *, source: str) -> LabelledSet:
    """Build the set of items with their lines; InputError for no items, and for an item that appears twice."""
    items: dict[Key, LabelledItem] = {}
    lines: dict[Key, int] = {}
    for line, item in numbered:
        if item.key in items:
            first = lines[item.key]
            why = f"{item.id!r} was labelled for {item.criterion!r} before, in line {first}"
            raise InputError.at(f"line {line}", why)
        items[item.key], lines[item.key] = item, line
    if not items:
        raise InputError.at(source, "no labelled item")
    return LabelledSet(tuple([items[key] for key in sorted(items)]), lines, source)


def read_labels(lines: Iterable[str], *, source: str = "labels") -> LabelledSet:
    """Read a set from JSON Lines. InputError names each line, the place in it and what was expected."""
    return build_labelled_set(read_models(parse_lines(lines), _ITEM), source=source)


def parse_lines(lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the object of each non-empty line with its number from 1; InputError for a line that holds none."""
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
    """Validate each row and return the models with their lines; InputError lists the problems of all rows.

    Reading stops after `MAX_PROBLEMS`.
    """
    models: list[tuple[int, Any]] = []
    problems: list[Problem] = []
    for line, row in rows:
        try:
            models.append((line, adapter.validate_python(row)))
        except ValidationError as error:
            found = list_problems(error, row)
            problems += [Problem(f"line {line}: {one.path}".removesuffix(": "), one.message) for one in found]
        if len(problems) >= MAX_PROBLEMS:
            break
    if problems:
        raise InputError(problems)
    return models


_ITEM: TypeAdapter[LabelledItem] = TypeAdapter(LabelledItem)

ITEM_COLUMNS = tuple(name for name in LabelledItem.model_fields if name not in ("trace", "labels"))
LABEL_COLUMNS = ("annotator", "label", "note")
REQUIRED_COLUMNS = ("id", "criterion", "group", "annotator", "label")


def read_csv(text: str, *, source: str = "labels") -> LabelledSet:
    """Read a set from a CSV table with a header: one line per label; lines with the same id and criterion are one item.

    InputError for missing or unknown columns (line 1), and for a line that contradicts the first line of its item.
    """
    table = csv.reader(StringIO(text, newline=""), strict=True)
    try:
        rows = [(table.line_num, row) for row in table if row]
    except csv.Error as error:
        raise InputError.at(f"line {table.line_num}", f"not CSV: {error}") from None
    head = _read_head(rows[0][1] if rows else [])
    merged: dict[Key, tuple[int, dict[str, Any]]] = {}
    for line, row in rows[1:]:
        if len(row) != len(head):
            raise InputError.at(f"line {line}", f"{len(row)} cells, but {len(head)} columns")
        cells = {name: cell for name, cell in zip(head, row, strict=True) if cell}
        label = {name: cells.pop(name) for name in LABEL_COLUMNS if name in cells}
        key = cells.get("id", ""), cells.get("criterion", "")
        first, item = merged.setdefault(key, (line, {**cells, "labels": []}))
        differing = sorted(name for name, value in cells.items() if item.get(name) != value)
        if differing:
            raise InputError.at(
                f"line {line}: /{differing[0]}", f"differs from line {first}, which is of the same item"
            )
        item["labels"].append(label)
    return build_labelled_set(read_models(merged.values(), _ITEM), source=source)


def _read_head(cells: Sequence[str]) -> list[str]:
    head = [name.strip() for name in cells]
    missing = [name for name in REQUIRED_COLUMNS if name not in head]
    unknown = [name for name in head if name not in (*ITEM_COLUMNS, *LABEL_COLUMNS)]
    if missing:
        raise InputError.at("line 1", f"no column {', '.join(missing)}")
    if unknown or len(set(head)) < len(head):
        raise InputError.at("line 1", f"unknown columns: {', '.join(unknown)}" if unknown else "a column appears twice")
    return head
