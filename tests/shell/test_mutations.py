"""What nobody meant to send: every outcome is a report or an error with its place, and one bad item spoils no other."""

from __future__ import annotations

import json
import random
import zlib
from collections import Counter
from io import BytesIO
from typing import Any

import pytest

from service.engine import Engine
from service.errors import InputError
from service.intake.reading import read_trace
from service.jobs.chunking import Cutter
from service.jobs.items import ItemScorer, widen_limits
from service.jobs.submissions import BatchDraft, BatchOptions, JobBounds, read_line_entries
from service.reading.places import TraceRecord
from service.reading.request import ScoreRequest
from service.reading.span_files import group_spans
from service.reading.strict_json import Limits
from service.reading.trace_files import scan_records
from service.registry import Registry
from service.store.jobs.leases import ChunkItem
from tests.bulk import WHOLE
from tests.mutations import HARMLESS, find_outcome, mutate, read_seeds, run, write

LIMITS = Limits()
ENGINE = Engine(Registry())


@pytest.mark.whole
def test_every_edited_request_is_scored_or_refused_at_its_place() -> None:
    number = 30_000 if WHOLE else 300
    found = run(number, seed=0)
    assert found.total() == number
    assert found.keys() <= {"report", "refused"}, found
    assert min(found.values()) > number / 10


HOSTILE: list[tuple[str, Any, str]] = [
    ("messages without end", {"messages": (endless := [])}, "nested in more than 64 levels"),
    ("a number no float holds", {"messages": [{"role": "user", "content": 10**400}]}, "more than 64 digits"),
    ("not a number", {"messages": [{"role": "user", "content": float("nan")}]}, "not a number"),
    ("half a character", {"messages": [{"role": "user", "content": "\ud800"}]}, "a lone surrogate"),
    ("a set", {"messages": [{"role": "user", "content": {1}}]}, "no JSON value but set"),
    ("a key that is a number", {"messages": [{1: 2}]}, "a key that is an integer"),
]  # fmt: skip
endless.append(endless)


@pytest.mark.parametrize(("trace", "told"), [pytest.param(*case[1:], id=case[0]) for case in HOSTILE])
def test_what_a_program_hands_over_is_refused_as_if_it_were_sent(trace: Any, told: str) -> None:
    with pytest.raises(InputError) as caught:
        ENGINE.score({"trace": trace})
    assert caught.value.problems[0].path.startswith("/trace/messages")
    assert told in str(caught.value)


def span(name: str, within: str | None, n: int, **attributes: Any) -> dict[str, Any]:
    return {
        "span_id": name,
        "parent_id": within,
        "start_time": 10**18 + n,
        "attributes": {"gen_ai.tool.name": "f", **attributes},
    }


CALLED = [{"gen_ai.tool.call.id": name} for name in "12"]
CIRCLES = [
    ("each within the other", [span("a", "b", 0), span("b", "a", 1)], 1),
    ("within itself", [span("a", "a", 0)], 1),
    ("a child that starts first", [span("a", "b", 0), span("b", "c", 1), span("c", None, 2)], 1),
    ("three in a circle, around one", [span("a", "b", 0), span("b", "c", 1), span("c", "a", 2), span("d", "a", 3)], 1),
    ("one id twice", [span("a", "b", 0), span("a", "c", 1), span("b", "a", 2), span("c", "b", 3)], 1),
    ("calls that differ", [span("a", "b", 0, **CALLED[0]), span("b", "a", 1, **CALLED[1])], 2),
]  # fmt: skip


@pytest.mark.parametrize(("spans", "calls"), [pytest.param(*case[1:], id=case[0]) for case in CIRCLES])
def test_runs_of_one_tool_within_each_other_are_one_call(spans: list[Any], calls: int) -> None:
    assert len(read_trace({"format": "spans", "spans": spans}).steps) == calls


GOOD = {"trace": {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]}}


def score_batch(lines: list[bytes], engine: Engine = ENGINE) -> tuple[dict[str, Any], dict[int, Any]]:
    """Submit a batch and run it: outcomes by name, and what was left out by line."""
    with Cutter(size=8) as cutter:
        bounds = JobBounds(limits=LIMITS, chunk_items=8, max_items=10**6, default_hours=1)
        draft = BatchDraft(BatchOptions(judges="off", skip_invalid=True), engine, bounds)
        skipped = draft.cut(read_line_entries(BytesIO(b"\n".join(lines)), LIMITS), cutter)["skipped_items"]
        kept = [line for chunk in cutter for line in zlib.decompress(chunk.payload).splitlines()]
    rows = ItemScorer(engine, widen_limits(LIMITS)).begin([ChunkItem(n, line) for n, line in enumerate(kept)])
    outcomes = [json.loads(row.line) for row in rows]  # pyright: ignore[reportAttributeAccessIssue] (none waits)
    return {one["custom_id"]: one for one in outcomes}, {one.line: one for one in skipped.lines}


@pytest.mark.whole
def test_one_bad_item_of_a_batch_is_named_and_all_others_are_scored() -> None:
    rng = random.Random(1)  # noqa: S311 (a draw, no secret)
    lines: list[bytes] = []
    for n in range(2_000 if WHOLE else 60):
        body, _ = mutate(rng.choice(read_seeds()), rng, below=("trace",))
        lines += [
            write({"custom_id": f"good {n}", **GOOD}),
            write({"custom_id": f"edited {n}", "trace": body["trace"]}),
        ]
    outcomes, skipped = score_batch(lines)
    assert all("report" in outcomes[f"good {n}"] for n in range(len(lines) // 2))
    assert len(outcomes) + len(skipped) == len(lines)
    for one in [*outcomes.values(), *skipped.values()]:
        status = one.get("error", {}).get("status", 200) if isinstance(one, dict) else 422
        assert status < 500, one


class Faulty(Engine):
    """An engine with a fault of its own: it stumbles over one tag."""

    def stumble(self, request: ScoreRequest) -> None:
        if request.tags.get("faulty"):
            raise KeyError("faulty")

    def admit(self, request: ScoreRequest) -> None:
        self.stumble(request)
        super().admit(request)

    def answer(self, request: ScoreRequest) -> Any:
        self.stumble(request)
        return super().answer(request)


def test_a_fault_of_ours_with_one_item_is_its_outcome_and_not_that_of_the_batch() -> None:
    items = [
        {"custom_id": name, "judges": "off", "tags": {"faulty": name} if name == "b" else {}, **GOOD} for name in "abc"
    ]
    outcomes, skipped = score_batch([json.dumps(item).encode() for item in items], Faulty(Registry()))
    assert not skipped
    assert {name: "report" in one for name, one in outcomes.items()} == {"a": True, "b": False, "c": True}
    assert outcomes["b"]["error"]["status"] == 500


@pytest.mark.whole
def test_one_bad_trace_among_spans_hides_no_other() -> None:
    rng = random.Random(2)  # noqa: S311 (a draw, no secret)
    spans = [seed["trace"] for seed in read_seeds() if "resourceSpans" in seed["trace"]]
    good = write({"resourceSpans": [{"scopeSpans": [{"spans": [
        {"traceId": "f" * 32, "spanId": "1" * 16, "name": "execute_tool f", "attributes":
         [{"key": "gen_ai.tool.name", "value": {"stringValue": "f"}}]}]}]}]})  # fmt: skip
    for _ in range(500 if WHOLE else 20):
        edited, _ = mutate(rng.choice(spans), rng, edits=HARMLESS)
        records = scan_records(BytesIO(b"\n".join([write(edited), good])), limits=LIMITS, name="export")
        found = list(group_spans(records, LIMITS, left_out=Counter()))
        traces = [one.value for one in found if isinstance(one, TraceRecord)]
        assert [one for one in traces if "f" * 32 in json.dumps(one)]
        requests = [{"trace": {"format": "spans", **trace}} for trace in traces]
        assert {find_outcome(ENGINE, request, sent=True, rng=rng) for request in requests} <= {"report", "refused"}
