"""What a worker and the store exchange about a chunk: its lease, its items, their outcomes, and what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from pydantic import JsonValue

from service.core.money import UsageAmount
from service.store.labelling.drafts import LabelItem

QUARANTINE_DEATHS = 3
"""Deaths after which a chunk of one item is not tried again."""

Pause = Literal["paused_provider", "paused_budget"]
"""Why a worker puts a whole batch off."""


class Lease(NamedTuple):
    """A claimed chunk: its batch, the position of its first item, and the number of the claim, which every write names."""

    batch: str
    first: int
    attempt: int


class ChunkItem(NamedTuple):
    """One item to work on."""

    position: int
    line: bytes
    """A JSON object: `custom_id`, and `request` as POST /v1/score takes it."""


@dataclass(frozen=True, slots=True, eq=False)
class ClaimedChunk:
    """A claimed chunk, with what is left of it to do."""

    lease: Lease
    tenant: str
    items: tuple[ChunkItem, ...]
    size: int
    deaths: int
    """How many workers have died while they ran it."""
    options: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """The options of its batch."""

    @property
    def runs_alone(self) -> bool:
        """Whether nothing may run beside it: a further death is then its own."""
        return self.deaths > 0


class OutcomeRow(NamedTuple):
    """The outcome of one item: a line of the results or of the errors."""

    position: int
    ok: bool
    line: str
    label_items: Sequence[LabelItem] = ()
    """What people may label of it."""
    facts: Mapping[str, Any] | None = None
    """The columns of `callgrade_items` that lists and counts use; None: it is left out of them."""


class OutcomeRows(NamedTuple):
    """Outcomes to record for one chunk."""

    lease: Lease
    rows: Sequence[OutcomeRow]
    used: UsageAmount | None = None
    """What this process has used for the batch so far; None: nothing new."""
