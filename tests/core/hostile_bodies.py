"""Bodies that ask for much work: each takes a number and grows with it, by the square or worse for who compares all with all."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations, cycle, islice
from typing import Any

Body = dict[str, Any]
BODIES: dict[str, Callable[[int], Body]] = {}


def body(make: Callable[[int], Body]) -> Callable[[int], Body]:
    """Puts a body on the list."""
    BODIES[make.__name__] = make
    return make


def call(name: str, arguments: Body | None = None, **rest: Any) -> Body:
    """The event of a call."""
    return {"call": {"name": name, **({} if arguments is None else {"arguments": arguments})}, **rest}


def due(tool: str, args: Body | None = None, **rest: Any) -> Body:
    """An expected call."""
    return {"tool": tool, **({} if args is None else {"args": args}), **rest}


def trace(events: list[Body], **rest: Any) -> Body:
    """A trace in callgrade's own form."""
    return {"format": "callgrade", "events": events, **rest}


def under(*checks: Body, **rest: Any) -> Body:
    """A rubric of these checks."""
    criteria = [{"id": f"c{n}", "stage": "arguments", "check": check} for n, check in enumerate(checks)]
    return {"id": "hostile", "criteria": criteria, **rest}


def reversed_calls(n: int) -> Body:
    """Calls of one tool in the order opposite to the expected one."""
    return {
        "trace": trace([call("f", {"a": i}) for i in range(n)]),
        "expected": {"calls": [due("f", {"a": n - 1 - i}) for i in range(n)]},
    }


@body
def one_tool_reversed(n: int) -> Body:
    return reversed_calls(n)


@body
def one_tool_without_arguments(n: int) -> Body:
    return {"trace": trace([call("f")] * (n + 1)), "expected": {"calls": [due("f")] * n}}


@body
def one_tool_and_nothing_right(n: int) -> Body:
    return {
        "trace": trace([call("f", {"a": i}) for i in range(n)]),
        "expected": {"calls": [due("f", {"a": -1 - i}) for i in range(n)]},
    }


@body
def every_call_of_another_form(n: int) -> Body:
    names = list(islice(cycle(combinations("abcdefghijklmnop", 3)), n))
    return {
        "trace": trace([call("f", dict.fromkeys(each, 1)) for each in names]),
        "expected": {"calls": [due("f", dict.fromkeys(each, 1)) for each in reversed(names)]},
    }


@body
def every_tool_another(n: int) -> Body:
    tools = [{"name": f"fetcher{i}"} for i in range(n)]
    return {
        "trace": trace([call(f"fetch{i}") for i in range(n)], tools=tools),
        "expected": {"calls": [due(f"fetched{i}") for i in range(n)]},
    }


@body
def a_matcher_in_each(n: int) -> Body:
    wanted = [due("f", {"a": {"kind": "similar", "value": f"word{i} and"}}) for i in range(n)]
    return {"trace": trace([call("f", {"a": f"word{i} or so"}) for i in range(n)]), "expected": {"calls": wanted}}


@body
def long_texts_to_compare(n: int) -> Body:
    wanted = [due("f", {"a": {"kind": "similar", "value": f"word{i} and " * 20}}) for i in range(n // 8)]
    made = [call("f", {"a": f"word{i} or so " * 20}) for i in range(n // 8)]
    return {"trace": trace(made), "expected": {"calls": wanted}}


@body
def long_texts_that_differ(n: int) -> Body:
    wanted = [due("f", {"a": f"word{i} and " * 20}) for i in range(n // 8)]
    made = [call("f", {"a": f"word{i} or so " * 20}) for i in range(n // 8)]
    return {"trace": trace(made), "expected": {"calls": wanted}}


@body
def alternatives(n: int) -> Body:
    side = max(1, int(n**0.5))
    wanted = [{"any_of": [due("f", {"a": -j}) for j in range(side)]} for _ in range(side)]
    return {"trace": trace([call("f", {"a": i}) for i in range(n // 2)]), "expected": {"calls": wanted}}


@body
def one_place_for_all(n: int) -> Body:
    group = {"any_order": [due("f")] * n}
    return {"trace": trace([call("f")] * n + [call("g")]), "expected": {"ordered": [due("g"), group]}}


@body
def more_calls_than_places(n: int) -> Body:
    wanted = [due("f")] * (n // 2) + [due("g")] * (n // 2)
    made = trace([call("f", {"a": i}) for i in range(n)])
    return {"trace": made, "expected": {"calls": wanted}, "rubric": under({"kind": "trajectory", "mode": "f1"})}


@body
def results_of_one_tool(n: int) -> Body:
    return {
        "trace": trace([call("f", result={"v": i}) for i in range(n)]),
        "expected": {"calls": [due("f", result={"v": n - i}) for i in range(n)]},
    }


@body
def bans_and_calls(n: int) -> Body:
    return {"trace": trace([call("f")] * n), "expected": {"disallowed": [due("f")] * n}}


@body
def a_ban_with_a_long_reason(n: int) -> Body:
    return {"trace": trace([call("f")] * n), "expected": {"disallowed": [due("f", reason="r" * 20 * n)]}}


@body
def texts_to_be_said(n: int) -> Body:
    wanted = [{"kind": "similar", "value": f"word {i}"} for i in range(n)]
    said = trace([{"assistant": f"text {i} of it"} for i in range(n)])
    return {"trace": said, "expected": {"said": wanted}, "rubric": under({"kind": "said"})}


@body
def failed_calls(n: int) -> Body:
    return {"trace": trace([{"user": "go"}, *[call("f", {"a": i}, result=1, is_error=True) for i in range(n)]])}


@body
def writes(n: int) -> Body:
    tools = [{"name": "f", "annotations": {"readOnlyHint": False}}]
    return {"trace": trace([call("f", {"a": i}, result=1) for i in range(n)], tools=tools)}


@body
def names_that_are_near(n: int) -> Body:
    tools = [{"name": f"refund_order_{i}"} for i in range(2 * n)]
    return {"trace": trace([call(f"refund_order_x{i}") for i in range(n // 4)], tools=tools)}


@body
def arguments_that_are_near(n: int) -> Body:
    schema = {"type": "object", "additionalProperties": False, "properties": {f"argument_{i}": {} for i in range(n)}}
    return {
        "trace": trace([call("f")], tools=[{"name": "f", "parameters": schema}]),
        "expected": {"calls": [due("f", {f"argument_x{i}": 1 for i in range(n)})]},
    }


@body
def required_by_every_call(n: int) -> Body:
    schema = {"type": "object", "required": [f"r{i}" for i in range(2 * n)]}
    return {"trace": trace([call("f", {"z": i}) for i in range(n)], tools=[{"name": "f", "parameters": schema}])}


@body
def a_long_name_required(n: int) -> Body:
    tools = [{"name": "f", "parameters": {"type": "object", "required": ["r" * 20 * n]}}]
    return {"trace": trace([call("f", {})] * n, tools=tools)}


@body
def criteria_and_calls(n: int) -> Body:
    return {
        "trace": trace([call("g")] * n),
        "expected": {"calls": [due("f")] * n},
        "rubric": under(*[{"kind": "tool_name"}] * min(n, 2_000)),
    }


@body
def changes_of_state(n: int) -> Body:
    initial, final, wanted = ({f"k{i}": value for i in range(n)} for value in range(3))
    world = {"state": {"initial": initial, "final": final}}
    ignored = [f"/q{i}" for i in range(n)]
    return {
        "trace": trace([call("f")], **world),
        "expected": {"state": {"final": wanted, "ignore": ignored}},
        "rubric": under({"kind": "state"}),
    }


@body
def turns(n: int) -> Body:
    events = [event for _ in range(n) for event in ({"user": "u"}, call("f"))]
    return {"trace": trace(events), "expected": {"turns": [{"turn": i + 1, "calls": []} for i in range(n)]}}


@body
def texts_about_results(n: int) -> Body:
    records = [{"id": f"ORD-{i}", "total": i * 3} for i in range(n)]
    said = [e for i in range(n) for e in ({"assistant": f"ORD-{i} total is {i * 3 + 1}."}, {"user": "u"})]
    return {"trace": trace([{"user": "u"}, call("f", result=records), *said])}


@body
def dates_among_dates(n: int) -> Body:
    user = {"user": "text of some words May 5 next Monday $30.00 " * n}
    return {"trace": trace([user, *[call("f", {"when": "2024-05-02", "id": f"ORD-{i}"}) for i in range(n)]])}


@body
def values_of_no_branch(n: int) -> Body:
    """Each call fits none of many branches, and each branch has something to say of it."""
    schema = {"type": "object", "properties": {"a": {"anyOf": [{"const": i} for i in range(n)]}}}
    made = [call("f", {"a": {"x": i}}) for i in range(n)]
    return {"trace": trace(made, tools=[{"name": "f", "parameters": schema}])}


@body
def calls_as_python(n: int) -> Body:
    output = ", ".join(f"f(a={i}, b=[{i}])" for i in range(n))
    return {"trace": {"format": "bfcl", "question": "go", "result": f"[{output}]"}}


@body
def messages_with_calls(n: int) -> Body:
    messages: list[Body] = [{"role": "user", "content": "go"}]
    for i in range(n):
        function = {"name": "f", "arguments": json.dumps({"a": i})}
        messages.append(
            {"role": "assistant", "tool_calls": [{"id": f"c{i}", "type": "function", "function": function}]}
        )
        messages.append({"role": "tool", "tool_call_id": f"c{i}", "content": json.dumps({"v": i})})
    return {"trace": {"format": "openai", "messages": messages}}


@body
def prices_told_wrong(n: int) -> Body:
    items = [{"name": f"Item {i}", "price_usd": i + 0.5} for i in range(n)]
    told = " and ".join(f"${i}.57" for i in range(n))
    said = {"assistant": f"The total of all is {told}, the cheapest is Item {n}."}
    return {"trace": trace([{"user": "u"}, call("f", result=items), said])}


@body
def results_with_one_name(n: int) -> Body:
    made = [call("f", {"a": i}, result={"name": "x", "v": i}) for i in range(n)]
    return {"trace": trace([{"user": "u"}, *made, {"assistant": "x has v " + ", ".join(map(str, range(n)))}])}


@body
def acts_told_and_not_done(n: int) -> Body:
    made = [call("cancel_order", {"id": f"W{i}"}, result={"error": "no"}, is_error=True) for i in range(n)]
    said = [{"assistant": f"I have cancelled order W{i} and refunded it."} for i in range(n)]
    return {"trace": trace([{"user": "u"}, *made, *said], tools=[{"name": "cancel_order"}])}


@body
def a_table_told_again(n: int) -> Body:
    rows = "".join(f"| item{i} | ${i}.50 | {i} |\n" for i in range(n))
    said = " ".join(f"item{i} costs ${i}.50." for i in range(n))
    table = f"| name | price | qty |\n|---|---|---|\n{rows}"
    return {"trace": trace([{"user": "u"}, call("f", result=table), {"assistant": said}])}


def by_method(rubric: str, *, compat: bool) -> Callable[[int], Body]:
    """The reversed calls under a packaged rubric."""
    return lambda n: {**reversed_calls(n), "rubric": {"extends": rubric, "compat": compat}}


for name in ("apple_trajectory", "arcade", "bfcl_ast", "future_agi_function_calling", "uipath_tool_call_args"):
    BODIES[name] = by_method(name, compat=False)
    BODIES[f"{name}_compat"] = by_method(name, compat=True)

for rubric, name in (
    ("apple_trajectory", "a_ban_with_a_long_reason"),
    ("apple_trajectory", "bans_and_calls"),
    ("apple_trajectory", "long_texts_to_compare"),
    ("future_agi_function_calling", "long_texts_that_differ"),
    ("future_agi_function_calling", "results_of_one_tool"),
):
    BODIES[f"{name}_by_{rubric}"] = lambda n, make=BODIES[name], rubric=rubric: {
        **make(n),
        "rubric": {"extends": rubric, "compat": True},
    }

for mode in ("strict", "f1"):
    BODIES[f"trajectory_{mode}"] = lambda n, mode=mode: {
        **reversed_calls(n),
        "rubric": under({"kind": "trajectory", "mode": mode}),
    }
