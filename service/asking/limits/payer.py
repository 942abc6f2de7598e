"""The tenant on whose behalf calls are made; tenants take turns at a provider. Set around each call."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

_PAYER: ContextVar[str] = ContextVar("payer", default="")


@contextmanager
def set_payer(tenant: str) -> Generator[None]:
    """Make calls inside the block on behalf of this tenant."""
    token = _PAYER.set(tenant)
    try:
        yield
    finally:
        _PAYER.reset(token)


def get_payer() -> str:
    """Return the tenant of the current call; "" if none is set."""
    return _PAYER.get()
