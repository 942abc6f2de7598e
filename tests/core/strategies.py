"""Generated requests: small catalogues, traces that call from them, and expectations made from the calls by perturbation."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

NAMES = ("get_order", "get-order", "refund_order", "list_orders", "ship")
SPARE = "audit_log"
"""A tool that is always on offer and that no expectation names."""
GHOST = "ghost"
"""A tool that is never on offer."""
FIELDS = ("a", "b", "c")


@cache
def one_of(*these: str) -> st.SearchStrategy[str]:
    """One of these. Strategies take longer to make than to draw from."""
    return st.sampled_from(these)


@cache
def some_of(*these: str) -> st.SearchStrategy[list[str]]:
    """Some of these, each once."""
    return st.lists(one_of(*these), unique=True)


TEXTS = st.sampled_from(["", "x", "xy", "Oslo", "new york", "2026-05-01", "3"])
NUMBERS = st.integers(-2, 3) | st.sampled_from([0.5, 1.0, 2.5])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
VALUES = SCALARS | st.lists(SCALARS, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), SCALARS, max_size=2)
WEIGHTS = st.sampled_from([0, 0.3, 1, 2.5, "minimal", "high", "critical"])

TYPED: dict[str, st.SearchStrategy[Any]] = {
    "integer": st.integers(-2, 3),
    "number": NUMBERS,
    "string": TEXTS,
    "boolean": st.booleans(),
    "array": st.lists(SCALARS, max_size=2),
    "object": st.dictionaries(st.sampled_from(FIELDS), SCALARS, max_size=2),
}
TYPES = st.dictionaries(one_of(*FIELDS), one_of(*sorted(TYPED)), max_size=3)
DEFAULTS = {kind: values | SCALARS for kind, values in TYPED.items()}
OFFERED = st.lists(one_of(*NAMES), min_size=1, max_size=5, unique=True)


@cache
@st.composite
def parameters(draw: st.DrawFn) -> Json:
    """A small JSON Schema, some of its properties required, some with a default."""
    types = draw(TYPES)
    properties: Json = {name: {"type": kind} for name, kind in types.items()}
    for name, kind in types.items():
        if draw(st.integers(0, 3)) == 0:
            properties[name]["default"] = draw(DEFAULTS[kind])
    required = draw(some_of(*sorted(types))) if types else []
    schema: Json = {"type": "object", "properties": properties, "required": required}
    if draw(st.booleans()):
        schema["additionalProperties"] = draw(st.booleans())
    return schema


@cache
@st.composite
def tool(draw: st.DrawFn, name: str) -> Json:
    """A tool, with a schema or without, that may be marked as one that only reads."""
    made: Json = {"name": name}
    if draw(st.integers(0, 5)):
        made["parameters"] = draw(parameters())
    if draw(st.booleans()):
        made["annotations"] = {"readOnlyHint": True}
    return made


@cache
@st.composite
def catalogues(draw: st.DrawFn) -> list[Json]:
    """One to five tools and the spare one."""
    names = draw(OFFERED)
    return [draw(tool(name)) for name in (*names, SPARE)]


@st.composite
def arguments_for(draw: st.DrawFn, made: Json) -> Json:
    """Arguments that mostly fit the tool, at times with one more."""
    properties = made.get("parameters", {}).get("properties", {})
    required = made.get("parameters", {}).get("required", [])
    given: Json = {}
    for name, schema in properties.items():
        if draw(st.integers(0, 7)) if name in required else draw(st.booleans()):
            given[name] = draw(TYPED[schema["type"]])
    if draw(st.integers(0, 3)) == 0:
        given[draw(one_of(*FIELDS, "more"))] = draw(VALUES)
    return given


@st.composite
def call_of(draw: st.DrawFn, made: Json) -> Json:
    """An event: a call of the tool, rarely with arguments that are no JSON."""
    broken = draw(st.integers(0, 15)) == 0
    event: Json = {"call": {"name": made["name"], "arguments": '{"a": ' if broken else draw(arguments_for(made))}}
    if draw(st.booleans()):
        event["result"] = draw(VALUES)
    return event


@st.composite
def calls(draw: st.DrawFn, tools: list[Json]) -> Json:
    """A call of one of the tools, rarely of one that is not there."""
    return draw(call_of(draw(st.sampled_from([*tools, *tools, {"name": GHOST}]))))


@cache
@st.composite
def traces(draw: st.DrawFn, *, least: int = 0) -> Json:
    """One to three turns with up to six calls, at least `least`, most of them ending in an answer."""
    tools = draw(catalogues())
    turns = draw(st.integers(1, 3))
    made = draw(st.lists(calls(tools[:-1]), min_size=least, max_size=6))
    events: list[Json] = []
    for turn in range(turns):
        mine = made[turn::turns]
        events += [{"user": f"turn {turn}"}, *mine]
        if turn + 1 < turns or draw(st.integers(0, 4)):
            events.append({"assistant": draw(one_of("done", "Oslo it is"))})
    return {"format": "callgrade", "id": "t", "tools": tools, "events": events}


@st.composite
def matchers(draw: st.DrawFn, value: Any) -> Json:
    """A matcher of any kind that makes sense of the value, fitting or near."""
    options: list[Json] = [
        {"kind": "exact", "value": value, "cast": draw(st.booleans())},
        {"kind": "present"},
        {"kind": "one_of", "values": [draw(VALUES), value]},
        {"kind": "json_similar", "value": value},
        {"kind": "shape", "value": [value, {"kind": "present"}]},
        {"kind": "contains", "value": value},
    ]
    if isinstance(value, str):
        options += [
            {"kind": "prefix", "value": value[:1]},
            {"kind": "suffix", "value": value, "ignore_case": True},
            {"kind": "pattern", "pattern": "[a-zA-Z ]*"},
            {"kind": "similar", "value": value, "metric": draw(one_of("cosine", "levenshtein"))},
            {"kind": "datetime", "value": "2026-05-02", "tolerance": 3600, "cutoff": 172800},
        ]
    if isinstance(value, int | float) and not isinstance(value, bool):
        options += [
            {"kind": "range", "min": value - 1, "max": value + draw(st.integers(-1, 1))},
            {"kind": "numeric", "value": value + 1, "tolerance": draw(st.integers(0, 2)), "cutoff": 3},
            {"kind": "numeric", "value": value, "value_range": [-5, 5]},
        ]
    chosen = draw(st.sampled_from(options))
    if draw(st.integers(0, 3)) == 0:
        chosen = {"kind": "any_of", "of": [{"kind": "exact", "value": draw(VALUES)}, chosen]}
    return chosen | ({"optional": True} if draw(st.integers(0, 3)) == 0 else {})


@st.composite
def wanted(draw: st.DrawFn, value: Any) -> Any:
    """What an expectation may say where a call has `value`: the same, another, a matcher, or one inside."""
    how = draw(one_of("same", "same", "other", "matcher", "inside"))
    if how == "other":
        return draw(VALUES)
    if how == "matcher":
        return draw(matchers(value))
    if how == "inside" and isinstance(value, list | dict) and value:
        keys = range(len(value)) if isinstance(value, list) else sorted(value)
        at = draw(st.sampled_from(list(keys)))
        changed = list(value) if isinstance(value, list) else dict(value)
        changed[at] = draw(matchers(changed[at]))
        return changed
    return value


@st.composite
def patterns(draw: st.DrawFn, event: Json) -> Json:
    """An expected call near the one that was made."""
    given = event["call"]["arguments"]
    pattern: Json = {"tool": event["call"]["name"]}
    if draw(st.integers(0, 5)) == 0:
        pattern["tool"] = draw(one_of(*NAMES))
    if draw(st.integers(0, 4)) == 0:
        return pattern
    given = given if isinstance(given, dict) else {}
    pattern["args"] = {name: draw(wanted(value)) for name, value in given.items() if draw(st.integers(0, 5))}
    if draw(st.integers(0, 4)) == 0:
        pattern["args"][draw(one_of(*FIELDS))] = draw(VALUES)
    if pattern["args"] and draw(st.booleans()):
        pattern["weights"] = draw(st.dictionaries(st.sampled_from(sorted(pattern["args"])), WEIGHTS, max_size=2))
    return pattern


@st.composite
def expectations(draw: st.DrawFn, trace: Json) -> Json:
    """An expectation near the trace: calls dropped, doubled, moved and changed."""
    made = [event for event in trace["events"] if "call" in event]
    listed = [draw(patterns(event)) for event in made if draw(st.integers(0, 4))]
    if listed and draw(st.integers(0, 4)) == 0:
        listed.append(draw(st.sampled_from(listed)))
    if draw(st.integers(0, 4)) == 0:
        listed.append({"tool": draw(one_of(*NAMES)), "args": {"a": 1}})
    if draw(st.booleans()):
        listed = draw(st.permutations(listed))
    if listed[1:] and draw(st.integers(0, 3)) == 0:
        listed = [{"any_of": listed[:2]}, *listed[2:]]
    if not listed:
        return {"calls": draw(st.sampled_from(["none", "some", []]))}
    cut = draw(st.integers(0, len(listed)))
    said: Json = draw(
        st.sampled_from(
            [
                {"calls": "none"},
                {"calls": "some"},
                {"calls": listed},
                {"calls": listed},
                {"ordered": listed},
                {"unordered": listed},
                {"ordered": listed[:cut], "unordered": listed[cut:]},
            ]
        )
    )
    extra = draw(st.sampled_from([None, True, False]))
    if extra is not None:
        said = {**said, "allow_extra": extra}
    if draw(st.integers(0, 4)) == 0:
        said = {**said, "answer": draw(st.sampled_from(["done", {"kind": "contains", "value": "Oslo"}]))}
    return said


@st.composite
def requests(draw: st.DrawFn, *, rubric: str | None = None, least: int = 0) -> Json:
    """A request for one of the packaged rubrics, judges off."""
    trace = draw(traces(least=least))
    body: Json = {"rubric": rubric or draw(one_of("four_step", "arcade")), "trace": trace}
    if draw(st.integers(0, 9)):
        body["expected"] = draw(expectations(trace))
    return body
