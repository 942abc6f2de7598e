"""The time limits of one outbound exchange."""

from __future__ import annotations

from typing import NamedTuple

CONNECT_S = 5.0
"""Default seconds to connect: a host that is there accepts in a fraction of a second."""


class Timeouts(NamedTuple):
    """Seconds, each from the start of the exchange: slowly arriving bytes extend none of them."""

    connect: float
    """Until there is a connection, including the resolution of its name."""
    first_byte: float
    """Until the head of the answer is complete."""
    total: float
    """Until the last byte of the answer."""

    @classmethod
    def within(cls, total: float, *, connect: float = CONNECT_S, first_byte: float | None = None) -> Timeouts:
        """Build timeouts, none of which exceeds the total.

        >>> Timeouts.within(60.0), Timeouts.within(2.0, first_byte=1.5)
        (Timeouts(connect=5.0, first_byte=60.0, total=60.0), Timeouts(connect=2.0, first_byte=1.5, total=2.0))
        """
        return cls(min(connect, total), min(total, total if first_byte is None else first_byte), total)
