"""What a process of ours does with its heap, and what it logs of an error whose text may hold a password."""

from __future__ import annotations

import subprocess
import sys

import pytest

OURS = "from service import heap; heap.claim_process(); heap.freeze_loaded()"
SOMEBODY_ELSES = "from service import heap; heap.freeze_loaded()"


@pytest.mark.parametrize(("code", "frozen"), [(OURS, True), (SOMEBODY_ELSES, False)])
def test_the_heap_is_settled_where_it_is_ours(code: str, frozen: bool) -> None:
    told = f"{code}; import gc; print(gc.get_freeze_count() > 1000, gc.get_threshold()[0] > 700)"
    ran = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [str(frozen)] * 2
