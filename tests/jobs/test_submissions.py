"""From the body of a submission to chunks."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from service.asking.cache.guard import Cache
from service.asking.demo_judge import DemoJudge
from service.asking.judging import Judges, Judging
from service.engine import Engine
from service.errors import BadLinesError, InputError, MalformedError, TooLargeError
from service.jobs.admission import Draft, JobAdmission, Upload
from service.jobs.calibrations import CalibrationDraft, CalibrationOptions
from service.jobs.chunking import MAX_CHUNK_BYTES, Cutter
from service.jobs.items import widen_limits
from service.jobs.spool import Spool
from service.jobs.submissions import (
    ITEM,
    MAX_LISTED_PROBLEMS,
    MAX_TAGS,
    BatchDraft,
    BatchOptions,
    JobBounds,
    RunOptions,
    read_line_entries,
)
from service.reading.request import read_request
from service.reading.strict_json import Limits, parse_strictly
from service.registry import Registry
from service.store.database import Database
from service.store.jobs.calibrations import Calibrations
from service.store.jobs.job import SkippedItems
from service.store.jobs.jobs import Batches, Jobs
from tests.labelled import item as labelled

ENGINE = Engine(Registry())
JUDGED = Engine(Registry(), judging=Judging(DemoJudge(), Cache(), Judges("openai/good")))
LIMITS = Limits()
BOUNDS = JobBounds(limits=LIMITS, chunk_items=2, max_items=100_000, default_hours=1)
TRACE = {
    "format": "openai",
    "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}],
}


def item(**more: Any) -> dict[str, Any]:
    return {"trace": TRACE, **more}


def jsonl(items: Iterable[Any]) -> bytes:
    return b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in items)


def taken(
    items: Iterable[Any], given: Mapping[str, Any] | None = None, *, size: int = 2, max_items: int = 100_000
) -> tuple[list[dict[str, Any]], SkippedItems]:
    """The items as a worker finds them, and those left out."""
    with Cutter(size=size) as cutter:
        draft = BatchDraft(BatchOptions(**(given or {})), ENGINE, replace(BOUNDS, max_items=max_items))
        made = draft.cut(read_line_entries(io.BytesIO(jsonl(items)), LIMITS), cutter)
        return kept(cutter), made["skipped_items"]


def kept(cutter: Cutter) -> list[dict[str, Any]]:
    lines = [line for chunk in cutter for line in zlib.decompress(chunk.payload).splitlines()]
    assert [chunk.first for chunk in cutter] == list(_firsts(cutter))
    return [json.loads(line) for line in lines]


def _firsts(cutter: Cutter) -> Iterable[int]:
    first = 0
    for chunk in cutter:
        yield first
        first += chunk.size


def problems(error: pytest.ExceptionInfo[InputError]) -> list[str]:
    return [problem.path for problem in error.value.problems]


# What arrives.


def spooled(body: bytes, *, packed: bool, max_bytes: int = 10_000, step: int = 7) -> tuple[bytes, str]:
    with Spool(max_bytes=max_bytes, packed=packed) as spool:
        for start in range(0, len(body), step):
            spool.write(body[start : start + step])
        spool.finish()
        assert spool.size <= max_bytes
        return spool.file.read(), spool.digest


@pytest.mark.parametrize("step", [1, 7, 10_000])
def test_what_is_packed_is_unpacked_and_has_the_same_digest(step: int) -> None:
    body = jsonl(item(custom_id=str(n)) for n in range(50))
    plain = spooled(body, packed=False)
    assert plain[0] == body
    assert spooled(gzip.compress(body), packed=True, step=step) == plain
    assert spooled(gzip.compress(body[:99]) + gzip.compress(body[99:]), packed=True, step=step) == plain


PACKED = gzip.compress(b"x" * 500)
DAMAGED = [
    ("nothing", b"", "too early"),
    ("truncated", PACKED[:-9], "too early"),
    ("without its end", PACKED[:-1], "too early"),
    ("no gzip", b'{"trace": {}}', "damaged"),
    ("a bit is flipped", PACKED[:-5] + bytes([PACKED[-5] ^ 1]) + PACKED[-4:], "damaged"),
    ("something follows", PACKED + b"more", "damaged"),
]


@pytest.mark.parametrize(("body", "told"), [pytest.param(*case[1:], id=case[0]) for case in DAMAGED])
@pytest.mark.parametrize("step", [1, 10_000])
def test_damaged_gzip_is_malformed(body: bytes, told: str, step: int) -> None:
    with pytest.raises(MalformedError, match=told):
        spooled(body, packed=True, step=step)


def test_a_bomb_is_never_unpacked_whole() -> None:
    bomb = gzip.compress(bytes(64 * 2**20), 9)
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError, match="unpacked"):
            spooled(bomb, packed=True, max_bytes=2**20, step=len(bomb))
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


# What is good.


def test_items_are_kept_in_order_with_what_they_do_not_say() -> None:
    given = {"rubric": "arcade", "judges": "off", "tags": {"a": "1", "b": "1"}, "name": "n"}
    items = [item(custom_id="x", rubric="four_step", tags={"b": "2"}), item(), b"\n", item(judges="off", custom_id="é")]
    found, left_out = taken(items, given)
    assert left_out == SkippedItems()
    assert [one["custom_id"] for one in found] == ["x", "item-1", "é"]
    assert [one["request"]["rubric"] for one in found] == ["four_step", "arcade", "arcade"]
    assert [one["request"]["tags"] for one in found] == [{"a": "1", "b": "2"}, *[{"a": "1", "b": "1"}] * 2]
    assert all(one["request"]["judges"] == "off" and one["request"]["trace"] == TRACE for one in found)
    assert all(read_request(one["request"]) for one in found)


def test_numbers_and_text_are_kept_as_they_are() -> None:
    line = b'{"custom_id":"a","trace":{"format":"callgrade","events":[{"user":"\\u2028\\ud83d\\ude00"},{"call":{"name":"f","arguments":{"n":123456789012345678901234567890,"x":1.0,"y":1e300}}}]}}\n'  # noqa: E501
    found, _ = taken([line])
    arguments = found[0]["request"]["trace"]["events"][1]["call"]["arguments"]
    assert arguments == {"n": 123456789012345678901234567890, "x": 1.0, "y": 1e300}
    assert isinstance(arguments["x"], float)
    assert found[0]["request"]["trace"]["events"][0]["user"] == "\u2028😀"


def test_chunks_are_bounded_by_items_and_by_bytes() -> None:
    with Cutter(size=3) as cutter:
        for n in range(7):
            cutter.add(b"%d" % n)
        cutter.finish()
        assert cutter.total == 7
        assert [(chunk.first, chunk.size) for chunk in cutter] == [(0, 3), (3, 3), (6, 1)]
    with Cutter(size=100) as cutter:
        for _ in range(5):
            cutter.add(b"x" * (MAX_CHUNK_BYTES // 2))
        cutter.finish()
        assert [chunk.size for chunk in cutter] == [2, 2, 1]


@pytest.mark.parametrize(
    ("line", "waits", "sizes"),
    [(b"x", True, [2, 2, 2, 2, 2]), (b"x", False, [8, 2]), (b"x" * 5_000, False, [2, 2, 2, 2, 2])],
    ids=["one waits for a judge", "one is small", "one is large"],
)
def test_small_items_that_wait_for_nobody_come_in_larger_chunks(line: bytes, waits: bool, sizes: list[int]) -> None:
    with Cutter(size=2) as cutter:
        for _ in range(10):
            cutter.add(line, waits=waits)
        cutter.finish()
        assert [chunk.size for chunk in cutter] == sizes


@pytest.mark.parametrize(
    ("given", "own", "waits"),
    [
        ({}, {}, True),
        ({"judges": "off"}, {}, False),
        ({"judges": "off"}, {"judges": "live"}, True),
        ({"judges": "live"}, {"judges": "off"}, False),
    ],
)
def test_an_item_waits_where_it_or_its_batch_asks_judges(given: Any, own: Any, waits: bool) -> None:
    value = item(**own)
    assert BatchDraft(BatchOptions(**given), JUDGED, BOUNDS).check(ITEM.validate_python(value)) is waits


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ({"judging": "batch"}, None),
        ({"judging": "batch", "judge_model": "ollama/qwen3"}, "/judging"),
        ({"judging": "auto", "judge_model": "ollama/qwen3"}, None),
        ({"judging": "batch", "deadline_hours": 24}, "/judging_hours"),
        ({"judging": "batch", "deadline_hours": 24, "judging_hours": 12}, None),
        ({"judging": "live", "deadline_hours": 24}, None),
    ],
)
def test_how_a_batch_is_judged_must_be_possible(given: dict[str, Any], place: str | None) -> None:
    judging = Judging(DemoJudge(), Cache(), Judges("openai/good", frozenset({"ollama/qwen3"})))
    engine = Engine(Registry(), judging=judging)
    if place is not None:
        with pytest.raises(InputError) as error:
            BatchDraft(BatchOptions(**given), engine, BOUNDS)
        assert [one.path for one in error.value.problems] == [place]
        return
    with Cutter(size=4) as cutter:
        kept = BatchDraft(BatchOptions(**given), engine, BOUNDS).cut(
            read_line_entries(io.BytesIO(jsonl([item()])), Limits()), cutter
        )["options"]
    is_live = given["judging"] == "live"
    assert kept.get("judging") == (None if is_live else given["judging"])
    assert kept.get("judging_hours") == (None if is_live else given.get("judging_hours", 24.0))


def test_an_item_at_the_limits_can_be_read_where_it_is_kept() -> None:
    deep: Any = 1
    limits = Limits(max_depth=8, max_bytes=2_000)
    for _ in range(2):
        deep = [deep]
    call = {"call": {"name": "f", "arguments": {"n": deep, "e": "1e9"}}}
    line = jsonl([item(trace={"format": "callgrade", "events": [call]})])
    parse_strictly(line, limits)
    with pytest.raises(TooLargeError):
        parse_strictly(jsonl([{"more": json.loads(line)}]), limits)
    with Cutter(size=2) as cutter:
        tags = {str(n): "x" * 60 for n in range(40)}
        BatchDraft(BatchOptions(tags=tags), ENGINE, BOUNDS).cut(read_line_entries(io.BytesIO(line), limits), cutter)
        for chunk in cutter:
            stored = zlib.decompress(chunk.payload)
            with pytest.raises(TooLargeError):
                parse_strictly(stored, limits)
            assert parse_strictly(stored, widen_limits(limits))


# What is wrong.


BAD = [
    ("no json", b"{nope}\n", "/2"),
    ("no object", b"[1]\n", "/2"),
    ("no trace", {"custom_id": "a"}, "/2/trace"),
    ("a trace that contradicts itself", item(trace={"format": "callgrade", "events": [{"result": 1}]}), "/2/trace"),
    ("a custom_id that is no text", item(custom_id=1), "/2/custom_id"),
    ("an empty custom_id", item(custom_id=""), "/2/custom_id"),
    ("a long custom_id", item(custom_id="x" * 257), "/2/custom_id"),
    ("an unknown field", item(nope=1), "/2/nope"),
    ("an unknown rubric", item(rubric="nope"), "/2/rubric"),
    ("judges where there is none", item(judges="live"), "/2/judges"),
    ("a sandbox where there is none", item(sandbox={"url": "https://e/"}), "/2/sandbox/url"),
    ("too many tags", item(tags={f"b{n}": "" for n in range(MAX_TAGS)}), "/2/tags"),
    ("a key twice", b'{"trace":1,"trace":1}\n', "/2"),
    ("a line that is too long", b'{"x":"' + b"x" * LIMITS.max_bytes + b'"}\n', "/2"),
]


@pytest.mark.parametrize(("bad", "place"), [pytest.param(*case[1:], id=case[0]) for case in BAD])
def test_a_bad_line_refuses_the_batch_or_is_left_out(bad: Any, place: str) -> None:
    items = [item(custom_id="first"), bad, item(custom_id="last")]
    given = {"tags": {"a": ""}}
    with pytest.raises(BadLinesError) as error:
        taken(items, given)
    assert error.value.message == "1 of the items cannot be taken"
    assert all(path.startswith(place) for path in problems(error))
    found, left_out = taken(items, {**given, "skip_invalid": True})
    assert [one["custom_id"] for one in found] == ["first", "last"]
    assert (left_out.count, [one.line for one in left_out.lines]) == (1, [2])
    assert left_out.lines[0].errors[0].pointer.startswith(place.removeprefix("/2"))


def test_all_bad_lines_are_named_up_to_a_thousand() -> None:
    bad = [item(custom_id=str(n)) if n % 2 else {} for n in range(100)]
    with pytest.raises(BadLinesError) as error:
        taken(bad)
    assert problems(error) == [f"/{n + 1}/trace" for n in range(0, 100, 2)]
    assert error.value.message == "50 of the items cannot be taken"
    with pytest.raises(BadLinesError) as error:
        taken([{}] * (MAX_LISTED_PROBLEMS + 5))
    assert problems(error) == [f"/{n + 1}/trace" for n in range(MAX_LISTED_PROBLEMS)]
    assert error.value.message.startswith(f"{MAX_LISTED_PROBLEMS + 5} of the items")
    found, left_out = taken([*[{}] * (MAX_LISTED_PROBLEMS + 5), item()], {"skip_invalid": True})
    assert (len(found), left_out.count, len(left_out.lines)) == (1, MAX_LISTED_PROBLEMS + 5, MAX_LISTED_PROBLEMS)


def test_items_of_one_custom_id_are_all_named() -> None:
    twice = [item(custom_id=name) for name in ("a", "b", "a", "c", "b", "a")]
    with pytest.raises(BadLinesError) as error:
        taken(twice)
    assert error.value.message == "5 of the items cannot be taken"
    assert problems(error) == [f"/{n}/custom_id" for n in (1, 2, 3, 5, 6)]
    found, left_out = taken(twice, {"skip_invalid": True})
    assert [one["custom_id"] for one in found] == ["a", "b", "c"]
    assert [one.line for one in left_out.lines] == [3, 5, 6]
    assert "/1" in left_out.lines[0].errors[0].detail


def test_a_name_that_is_given_may_not_be_taken_by_one_that_is_made() -> None:
    with pytest.raises(BadLinesError) as error:
        taken([item(custom_id="item-1"), item()])
    assert problems(error) == ["/1/custom_id", "/2/custom_id"]


# given, budget, limit of questions; or the place of what is refused
BOUNDED: list[tuple[dict[str, Any], tuple[float, int] | str]] = [
    ({}, (2.0, 100)),
    ({"budget_usd": 1.5, "max_questions": 99}, (1.5, 99)),
    ({"budget_usd": 2.0, "max_questions": 100}, (2.0, 100)),
    ({"max_questions": 0}, (2.0, 0)),
    ({"budget_usd": 2.1}, "/budget_usd"),
    ({"max_questions": 101}, "/max_questions"),
]


@pytest.mark.parametrize(("given", "outcome"), BOUNDED)
def test_a_batch_has_what_it_asks_for_or_all_that_is_allowed(
    database: Database, given: dict[str, Any], outcome: tuple[float, int] | str
) -> None:
    bounds = JobBounds(limits=LIMITS, chunk_items=1, max_items=1, default_hours=1, max_usd=2.0, max_questions=100)
    with Spool(max_bytes=9_999) as spool, Cutter(size=1) as cutter:
        spool.write(jsonl([item()]))
        spool.finish()
        sent = Upload(tenant="t", key=None, options=BatchOptions(**given), body=spool)
        admission = JobAdmission(BatchDraft, ENGINE, bounds)
        if isinstance(outcome, str):
            with pytest.raises(InputError, match="CALLGRADE_BATCH_MAX") as error:
                admission.admit(sent, Batches(database), cutter)
            assert problems(error) == [outcome]
        else:
            batch = admission.admit(sent, Batches(database), cutter)
            assert batch is not None
            assert (batch.budget_usd, batch.max_questions) == outcome


def test_memory_does_not_grow_with_the_items_but_by_their_names() -> None:
    items = jsonl(item(custom_id=str(n), tags={"x": "y" * 500}) for n in range(4_000))
    tracemalloc.start()
    try:
        with Cutter(size=100) as cutter:
            draft = BatchDraft(BatchOptions(), ENGINE, BOUNDS)
            before = tracemalloc.get_traced_memory()[0]
            draft.cut(read_line_entries(io.BytesIO(items), LIMITS), cutter)
            assert tracemalloc.get_traced_memory()[1] - before < 2**21 < len(items)
    finally:
        tracemalloc.stop()


# Into the store.

LABELLED = [labelled(0), {"id": "i000", "criterion": "result_groundedness", "raw": 1.0, "model": "m"}]


@pytest.mark.parametrize(
    ("kind", "draft", "options", "rows"),
    [(Batches, BatchDraft, BatchOptions(), [item()]), (Calibrations, CalibrationDraft, CalibrationOptions(), LABELLED)],
)
def test_an_answer_to_commit_that_gets_lost_makes_no_second_job(
    database: Database, kind: type[Jobs[Any]], draft: type[Draft], options: RunOptions, rows: list[Any]
) -> None:
    class Losing(kind):
        """A connection that breaks after the first commit, before the answer."""

        made: Any = None

        def submit(self, *given: Any) -> Any:
            made = super().submit(*given)
            if self.made is None:
                self.made = made
                raise sa.exc.OperationalError("commit", {}, OSError("server closed the connection"))
            return made

    jobs = Losing(database)
    bounds = JobBounds(limits=LIMITS, chunk_items=2, max_items=9, default_hours=1)
    with Spool(max_bytes=9_999) as spool, Cutter(size=2) as cutter:
        spool.write(jsonl(rows))
        spool.finish()
        sent = Upload(tenant="t", key=None, options=options, body=spool)
        assert JobAdmission(draft, ENGINE, bounds).admit(sent, jobs, cutter) == jobs.made
    assert jobs.page("t", limit=9).data == (jobs.made,)
