"""The laws that every score keeps, over generated requests."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from service import Report, conclude, plan, report_json, score
from service.core.outcome import PERFECT, Errored, Scored, Skipped
from service.core.report import StepVerdict
from service.reading.packaged_files import find_resource, read_yaml
from tests.bulk import examples
from tests.core.strategies import GHOST, Json, call_of, requests

LAW = settings(
    max_examples=examples(50),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
SLACK = 1e-9
GUARDED = ("select", "arguments", "sequence", "effect", "trace")


def scores(report: Report) -> dict[str, float | None]:
    """Every score by a name of its own."""
    found = {"trace": report.score} | {f"stage {stage.stage}": stage.score for stage in report.stages}
    found |= {f"criterion {each.id}": each.value for each in report.criteria}
    return found | {f"step {step.index}": step.score for step in report.steps}


def raised(before: Report, after: Report, *, stages: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """What went up of the stages named, `trace` being the trace itself: where a part is open, by the least that it may be."""
    ranges = {"trace": after.score_range} | {f"stage {one.stage}": one.score_range for one in after.stages}
    old, new = scores(before), scores(after) | {name: least[0] for name, least in ranges.items() if least}
    names = [name if name == "trace" else f"stage {name}" for name in stages]
    pairs = {name: (old.get(name), new.get(name)) for name in names}
    return {n: (a, b) for n, (a, b) in pairs.items() if a is not None and b is not None and b > a + SLACK}


def verdicts(report: Report) -> list[object]:
    return [report.verdict, *((stage.stage, stage.verdict) for stage in report.stages), report.all_passed]


@LAW
@given(requests(), st.lists(st.integers(0, 20), min_size=1, max_size=3))
def test_tools_that_are_offered_again_change_nothing(request, places):
    trace = request["trace"]
    events = list(trace["events"])
    for place in places:
        events.insert(place % (len(events) + 1), {"tools": trace["tools"]})
    again = {**request, "trace": {**trace, "events": events}}
    assert report_json(score(again)) == report_json(score(request))


def _places(trace: Json) -> list[int]:
    """Where a call can be put in without opening a turn of calls or taking the answer away."""
    events = trace["events"]
    turn = 0
    places: list[tuple[int, int]] = []
    calling: set[int] = set()
    for n, event in enumerate(events):
        turn += "user" in event
        calling |= {turn} if "call" in event else set()
        places += [(n, turn)] if n and "user" not in event else [(n, turn - 1)]
    places.append((len(events), turn))
    ends = len(events) - ("assistant" in events[-1])
    return [n for n, turn in places if turn in calling and n <= ends]


@LAW
@given(st.data(), requests(least=1))
def test_a_call_nobody_named_raises_nothing(data, request):
    trace = request["trace"]
    spare = data.draw(st.sampled_from([trace["tools"][-1], {"name": GHOST}]), label="tool")
    assume(spare["name"] not in {pattern["tool"] for pattern in _patterns(request)})
    event = data.draw(call_of(spare), label="event")
    at = data.draw(st.sampled_from(_places(trace)), label="place")
    more = copy.deepcopy(request)
    more["trace"]["events"].insert(at, event)
    assert raised(score(request), score(more), stages=GUARDED) == {}


def _listed(request: Json, group: str) -> list[Json]:
    found = request.get("expected", {}).get(group, [])
    return found if isinstance(found, list) else []


def _required(request: Json, event: Json, step: StepVerdict) -> list[str]:
    """The arguments of a call that may not be left out: those that the schema requires or that every expected call lists.

    What some expected call lets be absent is not required at all. What only the expected calls require has no default (left
    out, it would be that) and fits the schema (left out, it would break it no more).
    """
    call = event["call"]
    if not isinstance(call["arguments"], dict):
        return []
    schema = next((t.get("parameters", {}) for t in request["trace"]["tools"] if t["name"] == call["name"]), {})
    wanted = [p.get("args", {}) for p in _patterns(request) if _folded(p["tool"]) == _folded(call["name"])]
    optional = {n for args in wanted for n, value in args.items() if isinstance(value, dict) and value.get("optional")}
    due = set(schema.get("required", []))
    if wanted and step.outcomes.get("schema", PERFECT) == PERFECT:
        defaults = {n for n, inner in schema.get("properties", {}).items() if "default" in inner}
        due |= set.intersection(*map(set, wanted)) - defaults
    return sorted((due - optional) & call["arguments"].keys())


def _patterns(request: Json) -> list[Json]:
    """Every expected call, alternatives included."""
    expected = request.get("expected", {})
    groups = [expected.get(name) for name in ("calls", "ordered", "unordered")]
    listed = [position for group in groups if isinstance(group, list) for position in group]
    return [pattern for position in listed for pattern in position.get("any_of", [position])]


def _folded(name: str) -> str:
    return name.replace("-", "_")


@LAW
@given(st.data(), requests(least=1))
def test_taking_away_a_required_argument_raises_nothing(data, request):
    events = request["trace"]["events"]
    before = score(request)
    made = [n for n, event in enumerate(events) if "call" in event]
    able = [
        (n, name) for n, step in zip(made, before.steps, strict=True) for name in _required(request, events[n], step)
    ]
    assume(able)
    n, name = data.draw(st.sampled_from(able), label="removed")
    less = copy.deepcopy(request)
    del less["trace"]["events"][n]["call"]["arguments"][name]
    after = score(less)
    assert raised(before, after, stages=("decide", "select", "arguments", "integrate", "effect")) == {}
    if not _repeats(_listed(request, "ordered")):
        assert raised(before, after, stages=("trace", "sequence")) == {}


def _repeats(ordered: list[Json]) -> bool:
    """Whether a tool is due more than once in an order. Its calls are told apart by their arguments alone: with one argument
    less the call may stand for another of them, and the order that is seen may be a better one."""
    patterns = [pattern for position in ordered for pattern in position.get("any_of", [position])]
    names = [_folded(pattern["tool"]) for pattern in patterns]
    return len(set(names)) < len(names)


FOUR_STEP = read_yaml(find_resource("rubrics", "four_step.yaml").read_text("utf-8"), source="four_step.yaml")


@LAW
@given(requests(rubric="four_step"), st.permutations(FOUR_STEP["criteria"]))
def test_the_order_of_criteria_changes_no_byte(request, criteria):
    plain = report_json(score(request))
    moved = {**FOUR_STEP, "criteria": criteria}
    assert report_json(score({**request, "rubric": moved})) == plain


def _shuffled(value: Any, data: st.DataObject) -> Any:
    if isinstance(value, dict):
        keys = data.draw(st.permutations(sorted(value))) if len(value) > 1 else list(value)
        return {key: _shuffled(value[key], data) for key in keys}
    return [_shuffled(item, data) for item in value] if isinstance(value, list) else value


@LAW
@given(st.data(), requests())
def test_the_order_of_keys_changes_no_byte(data, request):
    assert _unworded(score(_shuffled(request, data))) == _unworded(score(request))


def _unworded(report: Report) -> bytes:
    """The report without the messages, which show values as they were written."""
    plain = json.loads(report_json(report), object_hook=lambda each: {k: v for k, v in each.items() if k != "message"})
    return json.dumps(plain).encode()


@LAW
@given(st.data(), requests())
def test_the_order_of_an_unordered_set_changes_no_score(data, request):
    group = "calls" if _listed(request, "calls") else "unordered"
    listed = _listed(request, group)
    assume(len(listed) > 1 or any("any_of" in position for position in listed))
    order = [
        position | ({"any_of": data.draw(st.permutations(position["any_of"]))} if "any_of" in position else {})
        for position in data.draw(st.permutations(listed))
    ]
    moved = {**request, "expected": {**request["expected"], group: order}}
    before, after = score(request), score(moved)
    old, new = scores(before), scores(after)
    loose = {n: (old[n], new[n]) for n in old if not n.startswith("step") and not _close(old[n], new[n])}
    assert loose == {}
    assert verdicts(before) == verdicts(after)


def _close(a: float | None, b: float | None) -> bool:
    return a is b or (a is not None and b is not None and abs(a - b) <= SLACK)


OUTCOMES = st.one_of(
    st.floats(0, 1).map(lambda value: Scored(value, value >= 0.8)),
    st.just(Errored("provider", "no answer")),
    st.just(Skipped("not_captured", "nothing to see")),
)


def _replies(data: st.DataObject, made: Any) -> dict[str, Any]:
    return {ask.key: data.draw(OUTCOMES) for ask in made.asks if data.draw(st.integers(0, 4))}


@LAW
@given(st.data(), requests())
def test_every_score_lies_between_0_and_1_whatever_is_replied(data, request):
    made = plan(request)
    for report in (score(request), conclude(made, _replies(data, made))):
        parts = [*scores(report).values(), report.coverage, *[stage.coverage for stage in report.stages]]
        assert all(value is None or 0 <= value <= 1 for value in parts)


@LAW
@given(st.data(), requests())
def test_the_same_plan_and_replies_give_the_same_bytes(data, request):
    made = plan(request)
    replies = _replies(data, made)
    first = report_json(conclude(made, replies))
    assert report_json(conclude(made, dict(reversed(replies.items())))) == first
    assert report_json(conclude(plan(json.loads(json.dumps(request))), replies)) == first


REACHED = {
    "wrong_argument", "missing_argument", "extra_argument", "wrong_tool", "missing_call", "extra_call", "extra_read",
    "over_call", "under_call", "out_of_order", "unparsable_arguments", "unknown_tool", "undeclared_argument",
    "schema_required", "schema_type", "wrong_answer", "wrong_quantity",
}  # fmt: skip


def test_the_strategies_reach_every_finding():
    """Laws that hold of dull requests would say little."""
    codes: set[str] = set()
    verdicts: set[str] = set()

    @settings(LAW, max_examples=examples(400))
    @given(requests())
    def look(request):
        report = score(request)
        verdicts.add(report.verdict)
        codes.update(finding.code for finding in report.findings())

    look()
    assert REACHED - codes == set()
    assert verdicts >= {"pass", "fail", "not_applicable"}
