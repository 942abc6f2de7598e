"""How long one outbound exchange may take, in its parts."""

from __future__ import annotations

from typing import NamedTuple

CONNECT_S = 5.0
"""Seconds for a connection, where nothing else is said: a host that is there takes one in a fraction of a second."""


class Timeouts(NamedTuple):
    """Seconds, each from the start of the exchange: however slowly bytes drip, none begins anew."""

    connect: float
    """Until there is a connection, its name looked up."""
    first_byte: float
    """Until the head of the answer is there."""
    total: float
    """Until the last byte of the answer is there."""

    @classmethod
    def within(cls, total: float, *, connect: float = CONNECT_S, first_byte: float | None = None) -> Timeouts:
        """Times of which none is longer than the whole.

        >>> Timeouts.within(60.0), Timeouts.within(2.0, first_byte=1.5)
        (Timeouts(connect=5.0, first_byte=60.0, total=60.0), Timeouts(connect=2.0, first_byte=1.5, total=2.0))
        """
        return cls(min(connect, total), min(total, total if first_byte is None else first_byte), total)
