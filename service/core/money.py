"""Money with unknown parts: what calls to models cost, and the one way to write it; and what else is used with it."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from decimal import Decimal
from typing import NamedTuple, Protocol


class Priced(Protocol):
    """What carries a cost: `cost_usd` is None if no price is known, and `unpriced_calls` counts the calls that it lacks."""

    @property
    def cost_usd(self) -> float | None:
        """US dollars."""
        ...

    @property
    def unpriced_calls(self) -> int:
        """A number of calls."""
        ...


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars of the calls with a known price, and the number of the other calls.

    >>> str(Cost(1.2) + Cost(unpriced=3)), str(Cost(unpriced=1)), str(Cost())
    ('at least $1.20; 3 calls without a known price', 'price unknown', 'free')
    """

    usd: float = 0.0
    unpriced: int = 0

    @classmethod
    def of(cls, usd: float | None) -> Cost:
        """Return the cost of one call; None: its price is unknown."""
        return cls(unpriced=1) if usd is None else cls(usd)

    @classmethod
    def read(cls, one: Priced) -> Cost:
        """Read the cost that something carries."""
        return cls(one.cost_usd or 0.0, one.unpriced_calls)

    @property
    def known_usd(self) -> float | None:
        """The dollars as a `cost_usd`: None if no price is known."""
        return None if self.unpriced and not self.usd else self.usd

    def __add__(self, other: Cost) -> Cost:
        """Return both together."""
        return Cost(self.usd + other.usd, self.unpriced + other.unpriced)

    def __str__(self) -> str:
        if self.known_usd is None:
            return "price unknown"
        if not self.unpriced:
            return format_usd(self.usd) if self.usd else "free"
        return f"at least {format_usd(self.usd)}; {self.unpriced} call{'s'[: self.unpriced > 1]} without a known price"


NOTHING = Cost()


class Spent(NamedTuple):
    """What calls took, whatever became of their replies."""

    cost: Cost
    tokens_in: int
    tokens_out: int


def format_usd(value: float) -> str:
    """Format US dollars, with as many digits as are significant.

    >>> format_usd(12.345), format_usd(0.00042), format_usd(0.000001), format_usd(0.0)
    ('$12.35', '$0.00042', '$0.000001', '$0.00')
    """
    if value == 0 or value >= 0.01:
        return f"${value:,.2f}"
    return f"${Decimal(f'{value:.2g}'):f}"


@dataclass(frozen=True, slots=True)
class UsageAmount:
    """What was used in a day, or what to add to it. `held_` amounts are reserved by a process, which gives back the rest."""

    questions: int = 0
    held_questions: int = 0
    cached: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    uncertain_usd: float = 0.0
    held_usd: float = 0.0
    unpriced: int = 0

    def __sub__(self, other: UsageAmount) -> UsageAmount:
        """The difference, field by field."""
        return UsageAmount(*[one - another for one, another in zip(astuple(self), astuple(other), strict=True)])
