"""Logs of real clients and frameworks: the trace matches the scripted run, and nothing vanishes.

A fixture in tests/data/formats names the package that wrote it, or the documents it was written from.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from service.core.trace import Trace
from service.errors import InputError
from service.intake.reading import guess_format
from tests.bulk import share
from tests.intake.records import load

DATA = Path(__file__).parents[1] / "data" / "formats"
WRAPPERS = {"braintrust", "exchange", "langfuse", "langsmith", "litellm", "mlflow", "openai_agents", "opik"}
FIXTURES = [
    pytest.param(path.parent.name, json.loads(path.read_text("utf-8")), id=f"{path.parent.name}-{path.stem}")
    for path in sorted(DATA.glob("*/*.json"))
    if path.parent.name != "spans"  # spans have a table of their own
]
fixtures = pytest.mark.parametrize(("name", "fixture"), FIXTURES)


def load_as(name: str, record: dict[str, Any]) -> Trace:
    return load({**record, "format": name})


def describe(trace: Trace) -> dict[str, Any]:
    """Describe a trace in the words of a fixture's run. A custom tool's argument is its text."""
    steps, said = trace.steps, [message for message in trace.messages if message.text and message.role != "system"]
    return {
        "calls": [
            [step.call.name, step.call.raw if step.call.arguments is None else step.call.arguments] for step in steps
        ],
        "results": [step.result and step.result.content for step in steps],
        "errors": [step.result is not None and step.result.is_error for step in steps],
        "texts": [[message.role, message.text] for message in said],
        "answer": trace.answer,
        "tools": trace.tools if trace.tools is None else [tool.name for tool in trace.tools],
    }


@fixtures
def test_what_is_read_is_what_the_run_had(name: str, fixture: dict[str, Any]) -> None:
    assert "package" in fixture or "from documentation" in fixture
    assert guess_format(fixture["record"]) == name
    trace = load_as(name, fixture["record"])
    assert describe(trace) == fixture["run"]
    assert sorted([part.kind, part.path] for part in trace.unread if part.kind != "other") == sorted(
        one for one in fixture["unread"] if one[0] != "other"
    )
    for part in (*trace.unread, *trace.ignored):  # it stands where it is said to
        here: Any = fixture["record"]
        for token in part.path.split("/")[1:]:
            here = json.loads(here) if isinstance(here, str) else here  # an attribute that spells JSON
            here = here[int(token) if isinstance(here, list) else token.replace("~1", "/").replace("~0", "~")]


TYPES = ("type", "part_kind", "kind", "from", "role")
KEYS = {"functionCall", "function_call", "toolUse", "toolResult", "tool_calls"}


def walk(value: Any) -> Iterator[dict[str, Any]]:
    """Iterate over the objects of a record."""
    if isinstance(value, dict):
        yield value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(below)


def spoil(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Drop or replace the type of each block in a record, and replace the key of each of its calls.

    A hosted tool's call without a name is nothing without its type, so those are left alone.
    """
    places = [
        (at, key, value)
        for at, given in enumerate(walk(record))
        for key in given
        if (key in TYPES and isinstance(given[key], str)) or key in KEYS
        for value in (None, "zzz")
    ]
    for at, key, value in share(places, one_in=7):
        spoilt = copy.deepcopy(record)
        block = list(walk(spoilt))[at]
        former = block.pop(key)
        if str(former).endswith("_call") and "name" not in block:
            continue
        block |= {} if value is None and key in TYPES else {"zzz": former} if key in KEYS else {key: value}
        yield spoilt


def count_calls(trace: Trace) -> tuple[int, int]:
    """Count the calls that a trace has or says it lacks; and those of the latter that only their results reveal."""
    lost = [part for part in trace.unread if part.kind == "call"]
    return len(trace.steps) + len(lost), sum("answers no call" in part.reason for part in lost)


@pytest.mark.whole
@fixtures
def test_no_call_vanishes_with_the_type_of_a_block(name: str, fixture: dict[str, Any]) -> None:
    made, alone = count_calls(load_as(name, fixture["record"]))
    for record in spoil(fixture["record"]):
        try:
            calls, orphans = count_calls(load_as(name, record))
        except (ValidationError, InputError):
            continue
        assert calls >= made - alone
        # Calls in an exchange beside the conversation are mentioned again; listing a server's tools may look like one.
        assert name in WRAPPERS or calls - orphans <= made + 1
