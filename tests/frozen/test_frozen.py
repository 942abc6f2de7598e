"""What is so now is what the golden files say. Where it is meant to be otherwise: python -m tests.frozen."""

from __future__ import annotations

import pytest

from tests.frozen.cases import read_cases
from tests.frozen.golden import AGAIN, differences, read_golden
from tests.frozen.keys import CACHED, FILE, check_keys, replies_kept
from tests.frozen.reports import check_reports, sample

CHECKS = {"reports": lambda: check_reports(sample), "keys": check_keys}


@pytest.mark.parametrize("part", CHECKS)
def test_nothing_has_changed(part: str) -> None:
    if found := CHECKS[part]():
        pytest.fail("\n".join([f"{len(found)} differ.", *found[:20], f"{AGAIN} {part}"]), pytrace=False)


def test_replies_that_were_cached_are_found() -> None:
    kept = read_golden(FILE)["cached replies"]
    assert replies_kept(read_cases()[CACHED], kept) == (kept, len(kept))


def test_a_difference_is_told_by_its_place() -> None:
    kept, now = {"a": [1, {"b/c": 2}], "d": 1, "e": 1}, {"a": [1, {"b/c": 3}], "d": True}
    assert differences(kept, now) == ["/a/1/b~1c: was 2, is 3", "/d: was 1, is true", "/e: was 1, is gone"]
