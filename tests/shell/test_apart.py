"""Large requests are scored in another process, as they would be in this one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from service import InputError
from service.engine import Engine, report_json
from service.jobs.items import ItemScorer, widen_limits
from service.reading.strict_json import Limits
from service.registry import Registry
from service.scoring_process import (
    LARGE_BYTES,
    ProcessRefusal,
    ProcessReport,
    ScoringProcess,
    ScoringProcessError,
    answer_job,
)
from service.store.jobs.leases import ChunkItem, OutcomeRow

LIMITS = Limits()
PADDING = "x" * LARGE_BYTES
BODY: dict[str, Any] = {
    "judges": "off",
    "trace": {
        "format": "callgrade",
        "events": [{"user": PADDING}, {"call": {"name": "f"}, "result": {"a": 1}}, {"assistant": "Done."}],
    },
    "expected": {"calls": [{"tool": "f"}]},
}


def line(name: str = "mine", **more: Any) -> ChunkItem:
    return ChunkItem(7, json.dumps({"custom_id": name, "request": BODY | more}, separators=(",", ":")).encode())


@pytest.fixture(scope="module")
def beside() -> Iterator[ScoringProcess]:
    made = ScoringProcess()
    yield made
    made.close()


@pytest.fixture
def engine() -> Engine:
    return Engine(Registry())


def test_the_report_is_the_same(beside: ScoringProcess, engine: Engine) -> None:
    found = beside.score(json.dumps(BODY).encode(), LIMITS)
    assert isinstance(found, ProcessReport)
    assert found.report == report_json(engine.score(BODY))
    assert (found.tally.verdict, found.tally.asked) == ("pass", 0)
    assert found == answer_job(engine, json.dumps(BODY).encode(), LIMITS)


def test_what_cannot_be_scored_is_refused_with_its_places(beside: ScoringProcess, engine: Engine) -> None:
    found = beside.score(json.dumps(BODY | {"trace": {"format": "xml"}}).encode(), LIMITS)
    assert isinstance(found, ProcessRefusal)
    with pytest.raises(InputError, match="no format 'xml'"):
        raise found.error(found.problems)
    assert isinstance(beside.score(b"{", LIMITS), ProcessRefusal)


def test_what_waits_for_others_comes_back(engine: Engine) -> None:
    class Waits(Engine):
        def must_wait(self, request: Any) -> bool:  # noqa: ARG002 (whatever is asked)
            return True

    assert answer_job(Waits(engine.registry), json.dumps(BODY).encode(), LIMITS) is None


def test_an_item_is_scored_as_here(beside: ScoringProcess, engine: Engine) -> None:
    for item in (line(), line(trace={"format": "xml", "pad": PADDING})):
        [there] = ItemScorer(engine, widen_limits(LIMITS), apart=beside).begin([item])
        [here] = ItemScorer(engine, widen_limits(LIMITS)).begin([item])
        assert isinstance(there, OutcomeRow)
        assert there == here


DYING = (sys.executable, "-c", "import sys; sys.stdin.buffer.read(8); sys.exit(3)")


def test_one_that_ends_its_process_is_given_up_and_the_next_has_another(engine: Engine) -> None:
    dying = ScoringProcess(DYING)
    for _ in range(2):
        with pytest.raises(ScoringProcessError, match="ended with 3"):
            dying.score(b"x" * LARGE_BYTES, LIMITS)
    [row] = ItemScorer(engine, widen_limits(LIMITS), apart=dying).begin([line()])
    assert isinstance(row, OutcomeRow)
    told = json.loads(row.line)
    assert (row.ok, told["custom_id"], told["error"]["title"]) == (False, "mine", "Quarantined")
