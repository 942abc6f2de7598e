"""What is to be kept, as plain values: what may be labelled, labels, scores. No database is loaded for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Word = Literal["pass", "fail", "unsure"]
"""What an annotator says of an item. `unsure` is kept, and is on neither side."""
LabelSource = Literal["human", "sample", "second", "direct", "adjudication", "import"]
"""How it came to a label. human: a fit or the lack of one left it to a human. sample: chance drew it, stratum by stratum.
second: another had labelled it, and how far people agree is measured on it. direct: somebody looked it up. adjudication:
annotators disagreed, and this label decides. import: it was labelled elsewhere."""


@dataclass(frozen=True, slots=True)
class LabelItem:
    """A criterion of a scored trace that a human may label. `raw` None: no judge said anything."""

    criterion: str
    stage: str
    waits: bool = False
    """Whether what the judge said is left to a human."""
    raw: float | None = None
    value: float | None = None
    """What its fit made of that."""
    threshold: float | None = None
    """The least value that passes."""
    passed: bool | None = None
    """What the report said of it; None: nothing, it was left open."""
    predictions: str | None = None
    """JSON: a list of them, as calibration takes them."""


@dataclass(frozen=True, slots=True)
class LabelDraft:
    """A label as it is given."""

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
    """A score that is to be kept."""

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
    """Where it broke, as of an item of a batch: `stage`, `finding`, `tool`, `stages` and `cluster`."""
