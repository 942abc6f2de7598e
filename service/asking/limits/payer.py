"""Whose calls are made here: turns at a provider's slots go by it. Set around each."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_PAYER: ContextVar[str] = ContextVar("payer", default="")


@contextmanager
def set_payer(tenant: str) -> Generator[None]:
    """Calls that are made inside the block are this tenant's."""
    token = _PAYER.set(tenant)
    try:
        yield
    finally:
        _PAYER.reset(token)


def get_payer() -> str:
    """The tenant whose calls are made; "" where nobody has said."""
    return _PAYER.get()
