"""Compute UiPath's four numbers for calls as their code does.

Source: UiPath/uipath-python, `packages/uipath/src/uipath/eval/_helpers/evaluators_helpers.py`. If only one side names any call,
the score is 0, so a tool that must not be called and was not also scores 0; `subset` changes nothing, since unexpected
arguments are never compared; an expected call takes the first call that fits, so the order can cost points; and values are
compared as Python does, where true is 1. Every score lies in [0, 1].
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from service.core.expectations.count_limits import Limit

Call = tuple[str, Mapping[str, JsonValue]]
"""A tool's name and the arguments; UiPath reads arguments that are not an object as {}."""
Output = tuple[str, str]
"""A tool's name and the text it returned."""


class ToolId(str):
    """A tool that a call names by its id: only an expected tool with exactly this id, or name, is the same."""

    __slots__ = ()


def is_same_tool(made: str, expected: str) -> bool:
    """Whether a call is of the expected tool: by the call's id where it has one, else by sanitised names.

    >>> is_same_tool("Web_Search", "Web Search"), is_same_tool(ToolId("t 1"), "t_1"), is_same_tool(ToolId("t 1"), "t 1")
    (True, False, True)
    """
    return made == expected if isinstance(made, ToolId) else sanitise(made) == sanitise(expected)


_ODD_CHARACTER = re.compile(r"[^a-zA-Z0-9_-]")


def sanitise(name: str) -> str:
    """Return a tool name as UiPath compares it: without odd characters, at most 64 characters, case kept.

    >>> sanitise("Web  Search!"), sanitise("web.search")
    ('Web_Search', 'websearch')
    """
    return _ODD_CHARACTER.sub("", "_".join(name.split()))[:64]


def score_count(made: Sequence[str], limits: Mapping[str, Limit], *, strict: bool = False) -> float:
    """Return the share of limits that hold; strict: 1.0 only if all do.

    >>> score_count([], {"x": Limit("=", 0)}), score_count(["y"], {"x": Limit("=", 0)})
    (0.0, 1.0)
    """
    if not limits or not made:
        return float(not limits and not made)
    calls = Counter(made)
    holds = [limit.holds(calls[tool] if tool in calls else calls[sanitise(tool)]) for tool, limit in limits.items()]
    return float(all(holds)) if strict else sum(holds) / len(holds)


def score_order(made: Sequence[str], expected: Sequence[str], *, strict: bool = False) -> float:
    """Return the longest common subsequence of names over the number expected; strict: 1.0 only if both are the same.

    >>> score_order(["a", "c", "b"], ["a", "b", "c"]), score_order(["x", "x", "a"], ["a"])
    (0.6666666666666666, 1.0)
    """
    if not expected or not made:
        return float(not expected and not made)
    if strict:
        return float(len(made) == len(expected) and all(map(is_same_tool, made, expected)))
    return _count_common(made, expected) / len(expected)


def _count_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(other) + 1)
    for name in one:
        before = row
        row = [0]
        for n, expected in enumerate(other):
            row.append(before[n] + 1 if is_same_tool(name, expected) else max(before[n + 1], row[n]))
    return row[-1]


def score_args(made: Sequence[Call], expected: Sequence[Call], *, strict: bool = False) -> float:
    """Return the share of expected calls for which a call with their arguments was found; strict: 1.0 only if all were.

    >>> score_args([("f", {"x": 1, "y": 2}), ("f", {"x": 1})], [("f", {"x": 1}), ("f", {"x": 1, "y": 2})])
    0.5
    """
    if not expected or not made:
        return float(not expected and not made)
    used: set[int] = set()
    for expected_call in expected:
        first = next((n for n, call in enumerate(made) if n not in used and _has_args(call, expected_call)), None)
        if first is not None:
            used.add(first)
    return float(len(used) == len(expected)) if strict else len(used) / len(expected)


def _has_args(call: Call, expected_call: Call) -> bool:
    args = call[1]
    return is_same_tool(call[0], expected_call[0]) and all(
        name in args and args[name] == value for name, value in expected_call[1].items()
    )


def score_outputs(made: Sequence[Output], expected: Sequence[Output], *, strict: bool = False) -> float:
    """Return the share of expected results that some call returned; strict: all must match, each tool's calls in order.

    >>> swapped = [("f", "2"), ("f", "1")]
    >>> score_outputs(swapped, [("f", "1"), ("f", "2")]), score_outputs(swapped, [("f", "1"), ("f", "2")], strict=True)
    (1.0, 0.0)
    """
    if not expected or not made:
        return float(not expected and not made)
    used: set[int] = set()
    for tool, text in expected:
        same_tool = [n for n, call in enumerate(made) if n not in used and is_same_tool(call[0], tool)]
        first = next((n for n in same_tool[: 1 if strict else None] if made[n][1] == text), None)
        if first is not None:
            used.add(first)
        elif strict:
            return 0.0
    return len(used) / len(expected)


def read_output_text(content: JsonValue, text: str | None = None) -> str:
    """Return a result as UiPath reads it from a span: an object's `content` ("" if that is empty or false), else the text.

    `text` is the span's own text, if it had one; UiPath reads it as JSON only for an object.

    >>> (
    ...     read_output_text({"content": {"a": 1}}),
    ...     read_output_text({"content": 0}),
    ...     read_output_text({"a": 1}),
    ...     read_output_text("ok"),
    ...     read_output_text(0),
    ... )
    ("{'a': 1}", '', '', 'ok', '0')
    """
    if isinstance(content, Mapping):
        inner = content.get("content")
        return str(inner) if inner else ""
    if text is not None:
        return text
    return content if isinstance(content, str) else json.dumps(content)
