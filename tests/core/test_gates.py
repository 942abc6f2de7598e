"""The deterministic checks by tables: `tests/data/gates/*.yaml`, one file for each check or theme.

A file gives `tools` and a `check` (or a `rubric`) for all its cases; a case gives its calls as `[tool, arguments, result]` (or
`[tool, arguments, result, error]`, where the tool reported one; a text in place of a call is what the user says), the `state` of
the world, what is expected, and what it wants of the report. Of the report only what `want` names is compared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service import InputError, Report, score
from service.core.outcome import MethodScore, Outcome, Scored, Skipped
from service.reading.packaged_files import read_yaml
from tests import own_checks  # noqa: F401 (registers the checks that tables name)
from tests.core.reports import outcomes

FILES = sorted((Path(__file__).parents[1] / "data" / "gates").glob("*.yaml"))
TABLES: list[dict[str, Any]] = [read_yaml(file.read_text("utf-8"), source=file.name) for file in FILES]  # type: ignore[misc]
CASES = [
    pytest.param(table, case, id=f"{file.stem}: {case['name']}")
    for file, table in zip(FILES, TABLES, strict=True)
    for case in table["cases"]
]


def trace_of(table: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """The conversation of a case, in callgrade's own form."""
    if "trace" in case:
        return case["trace"]
    events: list[dict[str, Any]] = [{"user": "Please."}]
    events += [{"user": call} if isinstance(call, str) else called(*call) for call in case.get("calls", [])]
    if "answer" in case:
        events.append({"assistant": case["answer"]})
    tools = case.get("tools", table.get("tools"))
    given = {"tools": tools, "state": case.get("state", table.get("state"))}
    return {"format": "callgrade", "events": events} | {key: value for key, value in given.items() if value is not None}


def called(name: str, *rest: Any) -> dict[str, Any]:
    """The event of a call; of the arguments, the result and whether it is an error, the last may be left out."""
    event: dict[str, Any] = {"call": {"name": name} | ({"arguments": rest[0]} if rest else {})}
    event |= {"result": rest[1]} if rest[1:] else {}
    return event | ({"is_error": True} if rest[2:] else {})


def request_of(table: dict[str, Any], case: dict[str, Any]) -> dict[str, Any]:
    """The request of a case, under a rubric of one criterion named `it` where only a check is given."""
    body: dict[str, Any] = {"trace": trace_of(table, case), "judges": "off"}
    if "expected" in case:
        body["expected"] = case["expected"]
    rubric = case.get("rubric", table.get("rubric"))
    if rubric is None or "check" in case:
        check = {**table.get("check", {}), **case.get("check", {})}
        settings = {**table.get("settings", {}), **case.get("settings", {})}
        rubric = {"id": "case", "criteria": [{"id": "it", "stage": "arguments", "check": check}], **settings}
    return {**body, "rubric": rubric}


def told(outcome: Outcome) -> Any:
    """An outcome in short: its value, or the cause for which it has none."""
    return outcome.value if isinstance(outcome, Scored) else outcome.cause


def seen(report: Report, wanted: dict[str, Any]) -> dict[str, Any]:
    """Of the report what `wanted` names."""
    first = report.criteria[0].id
    raw = [each.raw for each in outcomes(report, first) if isinstance(each, MethodScore)]
    everything = {
        "verdict": report.verdict,
        "score": report.score,
        "coverage": report.coverage,
        "all_passed": report.all_passed,
        "first_failing_stage": report.first_failing_stage,
        "failing": list(report.failing),
        "stages": {stage.stage: stage.score for stage in report.stages if stage.stage in wanted.get("stages", {})},
        "outcomes": [told(each) for each in outcomes(report, first)],
        "matched": [step.matched for step in report.steps],
        "findings": sorted(f"{finding.code} {finding.path}" for finding in report.findings()),
        "codes": sorted(finding.code for finding in report.findings()),
        "messages": sorted(finding.message for finding in report.findings()),
        "raw": raw[0] if raw else None,
        "unread": [part.path for part in report.unread],
    }
    everything |= {name: [told(each) for each in outcomes(report, name)] for name in wanted if name not in everything}
    return {name: everything[name] for name in wanted}


@pytest.mark.parametrize(("table", "case"), CASES)
def test_case(table, case):
    wanted = case["want"]
    if "error" in wanted:
        with pytest.raises(InputError) as caught:
            score(request_of(table, case))
        assert [f"{problem.path}: {problem.message}" for problem in caught.value.problems] == [wanted["error"]]
        return
    found = seen(score(request_of(table, case)), wanted)
    unsorted = {key: sorted(wanted[key]) for key in ("findings", "codes", "messages") if key in wanted}
    wanted = {**wanted, **unsorted}
    assert found == approximate(wanted)


def approximate(value: Any) -> Any:
    """The value with every number taken to 1e-6."""
    if isinstance(value, dict):
        return {key: approximate(item) for key, item in value.items()}
    if isinstance(value, list):
        return [approximate(item) for item in value]
    return pytest.approx(value, abs=1e-6) if isinstance(value, int | float) and not isinstance(value, bool) else value


def test_no_case_is_named_twice():
    for file, table in zip(FILES, TABLES, strict=True):
        names = [case["name"] for case in table["cases"]]
        assert sorted(set(names)) == sorted(names), file.name


LONG = ("x" * 5001, "y" * 5001)


@pytest.mark.parametrize(
    ("kind", "rubric"),
    [
        ("arguments", "four_step"),
        ("arcade", "arcade"),
        ("answer", "four_step"),
        ("said", "four_step"),
        ("none", "four_step"),
    ],
)
def test_what_is_too_long_to_compare_lowers_coverage_and_no_score(kind, rubric):
    """Two texts of 5,001 characters that differ are not compared; equal ones are equal at any length."""
    given, wanted = LONG
    similar = {"kind": "similar", "value": given if kind == "none" else wanted, "metric": "levenshtein"}
    of_text = kind in ("answer", "said")
    expected = {"calls": [{"tool": "f", "args": {"a": "x" if of_text else similar}}]}
    if of_text:
        expected[kind] = similar
    argument = "x" if of_text else given
    events = [{"call": {"name": "f", "arguments": {"a": argument}}}, {"assistant": given}]
    if kind == "said":  # another text, which is not what should be said, proves nothing
        events.insert(0, {"assistant": "Hi"})
    trace = {"format": "callgrade", "tools": [{"name": "f"}], "events": events}
    report = score({"rubric": rubric, "trace": trace, "expected": expected})
    causes = [one.cause for one in outcomes(report) if isinstance(one, Skipped)]
    assert causes.count("too_long") == (kind != "none")
    assert report.score in (None, 1.0)
    assert {one.cause for one in report.open} >= ({"too_long"} if kind != "none" else set())
    assert not report.all_passed or kind == "none"
