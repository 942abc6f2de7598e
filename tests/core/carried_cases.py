"""Cases of carried methods: a rubric, what was called and expected, the other system's number and ours."""

from __future__ import annotations

from typing import Any

from service import Report, score
from tests.tables import DATA, read_yaml

STAGES = {"count": "sequence", "order": "sequence", "args": "arguments", "output": "effect"}
"""Of UiPath's evaluators of calls."""


def load(name: str) -> dict[str, Any]:
    return read_yaml(DATA / "carried" / f"{name}.yaml")


def event(call: list[Any]) -> dict[str, Any]:
    """`[name, arguments, result]`, of which the last two may be left out; a plain text is what the user says."""
    if isinstance(call, str):
        return {"user": call}
    name, arguments, *result = [*call, {}] if len(call) == 1 else call
    return {"call": {"name": name, "arguments": arguments}} | ({"result": result[0]} if result else {})


def trace(case: dict[str, Any]) -> dict[str, Any]:
    events = [event(call) for call in case.get("made", [])]
    opened = events if case.get("bare") else [{"user": "Please."}, *events]
    return {"format": "callgrade", "events": opened} | {k: case[k] for k in ("tools", "state") if k in case}


def report(rubric: str, case: dict[str, Any], *, compat: bool, criteria: tuple[dict[str, Any], ...] = ()) -> Report:
    changed = {"extends": rubric, "compat": compat, "criteria": list(criteria)}
    return score({"rubric": changed, "trace": trace(case), "expected": case.get("expected")})


def values(found: Report) -> dict[str, float | None]:
    return {criterion.id: criterion.value for criterion in found.criteria}


def codes(found: Report) -> set[str]:
    return {finding.code for finding in found.findings()}
