"""Of an error whose text may hold a password, only the kind is logged."""

from __future__ import annotations

import asyncio

import pytest

from service.logs.quiet import name_error_kind


def test_of_an_error_whose_text_may_not_be_told_its_kind_is() -> None:
    async def late() -> None:
        async with asyncio.timeout(0):
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError) as caught:
        asyncio.run(late())
    assert name_error_kind(caught.value) == "TimeoutError"  # and not what it was raised from
    wrapped = RuntimeError("redis://:canary@h")
    wrapped.__cause__ = ConnectionError()
    assert name_error_kind(wrapped) == "ConnectionError"
