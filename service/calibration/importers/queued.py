"""Items that wait for labels: what a judge said of them lies where its fit says that a human should decide."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from service.calibration.labels import AnnotatorLabel, Key, LabelledItem
from service.calibration.predictions import Prediction
from service.calibration.splits import SEED
from service.core.judging.fits import Share
from service.core.models.kinds import Several

KEPT = frozenset({"prediction", "value", "threshold"})
"""What a line of the queue has beside a labelled item."""


class QueuedItem(LabelledItem):
    """A labelled item whose labels a human fills in, with what the judge said of it."""

    labels: Several[AnnotatorLabel] = ()
    prediction: Prediction
    value: Share
    """What calibration made of the judge's own value."""
    threshold: Share | None = None
    """The least value that passes."""

    @property
    def doubt(self) -> float:
        """How near the value is to where the verdict turns: 0 is at it."""
        return abs(self.value - (0.5 if self.threshold is None else self.threshold))

    @property
    def labelled(self) -> LabelledItem:
        """The item alone; pydantic's ValidationError where it has no label."""
        return LabelledItem.model_validate({name: value for name, value in self if name not in KEPT})


def read_queued(row: Mapping[str, Any]) -> Iterator[tuple[LabelledItem, tuple[Prediction, ...]]]:
    """The item of a line that a human has filled in, with the judge's prediction; nothing of one that still waits."""
    found = QueuedItem.model_validate(row)
    if found.labels:
        yield found.labelled, (found.prediction,)


def list_waiting(items: Iterable[QueuedItem], done: Collection[Key] = ()) -> list[QueuedItem]:
    """Those without labels that are not done elsewhere, the most doubtful first; of equals chance decides, by a hash.

    The choice is by the judge's value alone. A map from it may be fitted to such labels; a rate of all traffic may not be
    worked out from them, for which labels are drawn at random.
    """
    open_ones = [item for item in items if not item.labels and item.key not in done]
    return sorted(open_ones, key=lambda item: (round(item.doubt, 9), _hash_item(item), item.key))


def _hash_item(item: QueuedItem) -> str:
    return sha256(f"{SEED}\0label\0{item.id}".encode()).hexdigest()
