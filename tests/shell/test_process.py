"""What a process of ours does with its heap, and what it logs of an error whose text may hold a password."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from service.logs.quiet import name_error_kind

OURS = "from service import heap; heap.claim_process(); heap.freeze_loaded()"
SOMEBODY_ELSES = "from service import heap; heap.freeze_loaded()"


@pytest.mark.parametrize(("code", "frozen"), [(OURS, True), (SOMEBODY_ELSES, False)])
def test_the_heap_is_settled_where_it_is_ours(code: str, frozen: bool) -> None:
    told = f"{code}; import gc; print(gc.get_freeze_count() > 1000, gc.get_threshold()[0] > 700)"
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(frozen)] * 2


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
