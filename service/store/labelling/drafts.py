"""Values to be stored, as plain data: label items, labels, scores. They load no database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Word = Literal["pass", "fail", "unsure"]
"""An annotator's word on an item. `unsure` is stored, but takes no side."""
LabelSource = Literal["human", "sample", "second", "direct", "adjudication", "import"]
"""How a label came about. human: a fit, or the lack of one, left the item to a human. sample: it was drawn at random.
second: another person had labelled it, so that agreement is measured. direct: somebody looked it up. adjudication: annotators
disagreed, and this label decides. import: it was labelled elsewhere."""


@dataclass(frozen=True, slots=True)
class LabelItem:
    """A criterion of a scored trace that a human may label. `raw` None: no judge answered."""

    criterion: str
    stage: str
    waits: bool = False
    """Whether the judge's answer is left to a human."""
    raw: float | None = None
    value: float | None = None
    """The judge's value after its fit."""
    threshold: float | None = None
    """The least value that passes."""
    passed: bool | None = None
    """The report's decision; None: left open."""
    predictions: str | None = None
    """JSON: a list of judge answers, as calibration takes them."""


@dataclass(frozen=True, slots=True)
class LabelDraft:
    """A label as submitted."""

    item: str
    criterion: str
    annotator: str
    label: Word
    step: int | None = None
    value: float | None = None
    failing_step: int | None = None
    claim: str = ""
    note: str = ""
    blind: bool = False
    source: LabelSource = "direct"


@dataclass(frozen=True, slots=True)
class ScoreDraft:
    """A score to be stored."""

    rubric: str
    verdict: str
    score: float | None
    tags: Mapping[str, str]
    request: bytes
    """JSON, as POST /v1/score takes it."""
    report: bytes
    """JSON."""
    items: Sequence[LabelItem] = field(default=())
    broken: Mapping[str, str] = field(default_factory=dict[str, str])
    """Where it broke, as for an item of a batch: `stage`, `finding`, `tool`, `stages` and `cluster`."""


@dataclass(frozen=True, slots=True)
class ImportCounts:
    """How many items, labels, and predictions of judges."""

    items: int
    labels: int
    predictions: int
