"""A test that is run several times and passes where enough of its runs do: for agents that do not do the same twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

import pytest
from _pytest.runner import runtestprotocol

from service.cli.rendering.console import plural
from service.testing.failures import TraceFailure
from service.testing.sessions import PREFIX

RunKind = str
Reports = list[pytest.TestReport]
KIND = pytest.StashKey[RunKind]()
"""What came of the run that goes on: passed, failed, undecided, or broke (whatever raises that is no assertion)."""

KNOWN = ("repeats", "at_least", "cases")


class RunPlan(NamedTuple):
    """How often a test runs, and how often it must pass."""

    repeats: int
    at_least: int


def read_mark(marks: Iterable[pytest.Mark]) -> dict[str, object]:
    """What the marks `callgrade` of a test say, the nearest first. ValueError for what they cannot say."""
    told: dict[str, object] = {}
    for mark in marks:
        unknown = sorted(mark.kwargs.keys() - set(KNOWN))
        if mark.args or unknown:
            raise ValueError(
                f"@pytest.mark.callgrade takes {', '.join(f'{one}=' for one in KNOWN)} by name; "
                f"not {', '.join(unknown) or 'a position'}"
            )
        told = {**mark.kwargs, **told}
    return told


def read_plan(mark: Mapping[str, object]) -> RunPlan | None:
    """The plan of a test; None where it runs once. ValueError for numbers that make none."""
    repeats = mark.get("repeats", 1)
    at_least = mark.get("at_least", repeats)
    whole = all(isinstance(one, int) and not isinstance(one, bool) for one in (repeats, at_least))
    if not whole or not 1 <= cast("int", at_least) <= cast("int", repeats):
        raise ValueError(
            f"@pytest.mark.callgrade: expected repeats >= at_least >= 1; got repeats={repeats!r}, at_least={at_least!r}"
        )
    return None if repeats == 1 else RunPlan(cast("int", repeats), cast("int", at_least))


def name_kind(error: BaseException | None) -> RunKind:
    """What a run came to, by what its body raised."""
    if error is None:
        return "passed"
    if isinstance(error, TraceFailure):
        return "failed" if error.report.verdict == "fail" else "undecided"
    return "failed" if isinstance(error, AssertionError | pytest.fail.Exception) else "broke"


def run_repeatedly(item: pytest.Item, nextitem: pytest.Item | None, plan: RunPlan) -> Reports:
    """The reports of a test that stand for all its runs, each with fixtures of its own.

    A run that skips, or breaks in another way than by an assertion, ends them: a crash is no noise.
    """
    runs: list[tuple[RunKind, Reports]] = []
    again = cast("pytest.Item", item.parent)  # what is set up for more than this test stays for its next run
    for n in range(plan.repeats):
        item.stash[KIND] = "broke"
        reports = runtestprotocol(item, log=False, nextitem=nextitem if n == plan.repeats - 1 else again)
        kind = item.stash[KIND]
        bad = any(report.when != "call" and not report.passed for report in reports)
        if kind == "broke" or bad or any(report.skipped for report in reports):
            told = f"run {n + 1} of {plan.repeats} broke or was skipped, which ended them"
            failing = (
                [] if any(report.failed for report in reports) else [one for kind, one in runs if kind != "passed"]
            )
            return _end_early(item, nextitem, failing[0] if failing else reports, told)
        runs.append((_find_kind(kind, reports), reports))
    return _fold(runs, plan)


def _find_kind(kind: RunKind, reports: Reports) -> RunKind:
    """What a run came to, also where nothing was raised and pytest or a plugin failed it: a strict xfail, a soft assertion."""
    return "failed" if kind == "passed" and any(report.failed for report in reports) else kind


def _end_early(item: pytest.Item, nextitem: pytest.Item | None, reports: Reports, told: str) -> Reports:
    """The reports of the run that broke. What was left set up for the next run is torn down."""
    state = item.session._setupstate  # pyright: ignore[reportPrivateUsage] (pytest has no public way)
    left = pytest.CallInfo[None].from_call(lambda: state.teardown_exact(nextitem), "teardown")
    if left.excinfo is not None:
        reports = [*reports[:-1], pytest.TestReport.from_item_and_call(item, left)]
    reports[-1].user_properties.append((PREFIX + "runs", told))
    return reports


def _fold(runs: list[tuple[RunKind, Reports]], plan: RunPlan) -> Reports:
    kinds = [kind for kind, _ in runs]
    passed, undecided = kinds.count("passed"), kinds.count("undecided")
    more = f", {undecided} undecided" if undecided else ""
    told = f"{passed} of {plan.repeats} runs passed{more}; at least {plan.at_least} must"
    flaky = 0 < passed < plan.repeats
    first, last = runs[0][1], runs[-1][1]
    last[-1].user_properties.append((PREFIX + "runs", f"{'flaky, ' if flaky else ''}{told}"))
    call = next((reports[1] for kind, reports in runs if kind != "passed"), last[1])
    broken = [f"run {n}: {kind}" for n, kind in enumerate(kinds, start=1) if kind != "passed"]
    if passed >= plan.at_least:
        call.outcome, text = "passed", call.longreprtext
        call.longrepr = None
        call.sections += [("callgrade", "\n".join([told, *broken, text]))] if broken else []
    else:
        call.longrepr = "\n".join(
            [told, *broken, f"the first of these {plural(len(broken), 'run')}:", call.longreprtext]
        )
    call.duration = sum(report.duration for _, reports in runs for report in reports if report.when == "call")
    return [first[0], call, last[-1]]
