"""Run a test several times, and pass it if enough of its runs pass, for agents whose behaviour varies."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple, cast

import pytest

from service.cli.screen import pluralize
from service.testing.checks import TraceFailure
from service.testing.sessions import PROPERTY_PREFIX

RunKind = str
Reports = list[pytest.TestReport]
RUN_KIND_KEY = pytest.StashKey[RunKind]()
"""How the current run ended: passed, failed, undecided, or broke (it raised something other than an AssertionError)."""


class RunPlan(NamedTuple):
    """How many times a test runs, and how many times it must pass."""

    repeats: int
    at_least: int


def read_run_plan(marks: Iterable[pytest.Mark]) -> RunPlan | None:
    """Read the run plan of a test from its `callgrade` marks, of which the closest wins; None if it runs once.

    ValueError for unknown arguments, and for numbers that make no sense.
    """
    mark: dict[str, object] = {}
    for one in marks:
        unknown = sorted(one.kwargs.keys() - {"repeats", "at_least"})
        if one.args or unknown:
            what = ", ".join(unknown) or "positional ones"
            raise ValueError(f"@pytest.mark.callgrade takes the keyword arguments repeats=, at_least=; not {what}")
        mark = {**one.kwargs, **mark}
    repeats = mark.get("repeats", 1)
    at_least = mark.get("at_least", repeats)
    whole = all(isinstance(one, int) and not isinstance(one, bool) for one in (repeats, at_least))
    if not whole or not 1 <= cast("int", at_least) <= cast("int", repeats):
        raise ValueError(
            f"@pytest.mark.callgrade: expected repeats >= at_least >= 1; got repeats={repeats!r}, at_least={at_least!r}"
        )
    return None if repeats == 1 else RunPlan(cast("int", repeats), cast("int", at_least))


def name_kind(error: BaseException | None) -> RunKind:
    """Name how a run ended, given what its body raised."""
    if error is None:
        return "passed"
    if isinstance(error, TraceFailure):
        return "failed" if error.report.verdict == "fail" else "undecided"
    return "failed" if isinstance(error, AssertionError | pytest.fail.Exception) else "broke"


def run_repeatedly(item: pytest.Item, nextitem: pytest.Item | None, plan: RunPlan) -> Reports:
    """Run a test several times, each with its own fixtures, and return reports that stand for all runs.

    A run that is skipped, or fails with anything but an AssertionError, ends the series: a crash is not noise.
    """
    runner: Any = item.config.pluginmanager.get_plugin("runner")
    runs: list[tuple[RunKind, Reports]] = []
    same_scope = cast("pytest.Item", item.parent)  # keeps wider fixtures set up for the test's next run
    for n in range(plan.repeats):
        item.stash[RUN_KIND_KEY] = "broke"
        reports = runner.runtestprotocol(item, log=False, nextitem=nextitem if n == plan.repeats - 1 else same_scope)
        kind = item.stash[RUN_KIND_KEY]
        bad = any(report.when != "call" and not report.passed for report in reports)
        if kind == "broke" or bad or any(report.skipped for report in reports):
            text = f"run {n + 1} of {plan.repeats} raised an error or was skipped, which ended the series"
            if not any(report.failed for report in reports):
                reports = next((one for kind, one in runs if kind != "passed"), reports)
            return _end_early(item, nextitem, reports, text)
        if kind == "passed" and any(report.failed for report in reports):
            kind = "failed"  # without an exception, as by a strict xfail or a plugin's soft assertion
        runs.append((kind, reports))
    return _fold(runs, plan)


def _end_early(item: pytest.Item, nextitem: pytest.Item | None, reports: Reports, text: str) -> Reports:
    """Tear down what is left set up for the next run, and return the reports of the run that broke."""
    runner: Any = item.config.pluginmanager.get_plugin("runner")
    teardown = pytest.CallInfo[None].from_call(lambda: runner.pytest_runtest_teardown(item, nextitem), "teardown")
    if teardown.excinfo is not None:
        reports = [*reports[:-1], pytest.TestReport.from_item_and_call(item, teardown)]
    reports[-1].user_properties.append((PROPERTY_PREFIX + "runs", text))
    return reports


def _fold(runs: list[tuple[RunKind, Reports]], plan: RunPlan) -> Reports:
    kinds = [kind for kind, _ in runs]
    passed, undecided = kinds.count("passed"), kinds.count("undecided")
    more = f", {undecided} undecided" if undecided else ""
    result = f"{passed} of {plan.repeats} runs passed{more}; at least {plan.at_least} must"
    flaky = 0 < passed < plan.repeats
    first, last = runs[0][1], runs[-1][1]
    last[-1].user_properties.append((PROPERTY_PREFIX + "runs", f"{'flaky, ' if flaky else ''}{result}"))
    call = next((reports[1] for kind, reports in runs if kind != "passed"), last[1])
    broken = [f"run {n}: {kind}" for n, kind in enumerate(kinds, start=1) if kind != "passed"]
    if passed >= plan.at_least:
        call.outcome, text = "passed", call.longreprtext
        call.longrepr = None
        call.sections += [("callgrade", "\n".join([result, *broken, text]))] if broken else []
    else:
        first_of = f"the first of these {pluralize(len(broken), 'run')}:"
        call.longrepr = "\n".join([result, *broken, first_of, call.longreprtext])
    call.duration = sum(report.duration for _, reports in runs for report in reports if report.when == "call")
    return [first[0], call, last[-1]]
