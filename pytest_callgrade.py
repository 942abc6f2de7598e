"""The pytest plugin: the fixture `callgrade`, the marker of the same name, and the option `--callgrade-record`.

pytest loads this file in every run where callgrade is installed, so nothing of callgrade is imported here until a test
asks for the fixture or has the marker.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from service.core.report import Report
    from service.testing.checks import TraceChecker
    from service.testing.sessions import CheckSession

MARKER = "callgrade"
RECORDED_ROWS = "callgrade_rows"

SESSION_KEY = pytest.StashKey["CheckSession"]()


class CheckReports:
    """Collects check results and recorded replies for the final summary; xdist workers send theirs to the controller."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tests: list[tuple[str, Any]] = []
        self._recorded: dict[str, Any] = {}
        self._row_count = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the properties that a test's checks set."""
        if report.when == "teardown" and any(name.startswith("callgrade_") for name, _ in report.user_properties):
            self._tests.append((report.nodeid, list(report.user_properties)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:  # noqa: ARG002
        """Take over what an xdist worker recorded."""
        self._add(getattr(node, "workeroutput", {}).get(RECORDED_ROWS))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Write the recorded replies to the cassette, or, in an xdist worker, hand them to the controller."""
        if SESSION_KEY in self._config.stash:
            self._add(self._config.stash[SESSION_KEY].close())
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[RECORDED_ROWS] = self._recorded
        elif self._recorded:
            from service.testing.cassette import CassetteHead, save_cassette  # noqa: PLC0415

            head = CassetteHead(**self._recorded["head"])
            self._row_count = save_cassette(_find_cassette(self._config), head, self._recorded["added"])

    def _add(self, recorded: dict[str, Any] | None) -> None:
        if recorded:
            added = {**self._recorded.get("added", {}), **recorded["added"]}
            self._recorded = {"head": recorded["head"], "added": added}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print a summary of all checks."""
        if not self._tests:
            return
        from service.testing.sessions import summarize_properties  # noqa: PLC0415

        terminalreporter.section("callgrade")
        for line in summarize_properties(self._tests):
            terminalreporter.line(line)
        if self._recorded:
            terminalreporter.line(f"recorded: {len(self._recorded['added'])} new of {self._row_count} replies")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the command-line option and the ini settings."""
    group = parser.getgroup("callgrade", "traces of tool use")
    group.addoption(
        "--callgrade-record",
        action="store_true",
        help="ask the judge (CALLGRADE_JUDGE_MODEL) the questions missing from the cassette, and add its replies",
    )
    parser.addini("callgrade_cassette", "file with the judge's recorded replies", default="callgrade-cassette.jsonl")
    parser.addini("callgrade_judges", "off: ask no judge, use only what code decides", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and the collector of results."""
    config.addinivalue_line("markers", "callgrade(repeats=1, at_least=repeats): run several times")
    config.pluginmanager.register(CheckReports(config), "callgrade_reports")


@pytest.fixture
def callgrade(request: pytest.FixtureRequest) -> TraceChecker:
    """Score traces: `callgrade.check(trace, expected=..., rubric=...)` fails the test unless the trace passes."""
    from service.testing.sessions import list_properties  # noqa: PLC0415 (not before a test asks for it)

    def observe(report: Report) -> None:
        request.node.user_properties.extend(list_properties(report))

    return replace(_open_session(request.config).checker, observe=observe)


def _open_session(config: pytest.Config) -> CheckSession:
    from service.cli.exits import describe_error  # noqa: PLC0415
    from service.errors import CallgradeError  # noqa: PLC0415
    from service.testing.sessions import CheckSession  # noqa: PLC0415

    if SESSION_KEY not in config.stash:
        judges, record = config.getini("callgrade_judges"), bool(config.getoption("callgrade_record"))
        if judges not in ("", "off"):
            raise pytest.UsageError(f"callgrade_judges: expected off, or nothing; got {judges!r}")
        try:
            config.stash[SESSION_KEY] = CheckSession.open(_find_cassette(config), record=record, off=judges == "off")
        except CallgradeError as error:
            raise pytest.UsageError(describe_error(error)) from None
    return config.stash[SESSION_KEY]


def _find_cassette(config: pytest.Config) -> Path:
    return config.rootpath / config.getini("callgrade_cassette")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Refuse a marker that cannot be meant, before anything runs."""
    marks = list(metafunc.definition.iter_markers(MARKER))
    if not marks:
        return
    from service.testing.repeats import read_run_plan  # noqa: PLC0415 (not before a test has the marker)

    try:
        read_run_plan(marks)
    except ValueError as error:
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {error}") from None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Run a test `repeats` times, as its marker asks, and report it once."""
    marks = list(item.iter_markers(MARKER))
    if not marks:
        return None
    from service.testing.repeats import read_run_plan, run_repeatedly  # noqa: PLC0415

    plan = read_run_plan(marks)
    if plan is None:
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in run_repeatedly(item, nextitem, plan):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record how one of several runs ended."""
    report = yield
    if call.when == "call" and next(item.iter_markers(MARKER), None) is not None:
        from service.testing.repeats import RUN_KIND_KEY, name_kind  # noqa: PLC0415

        item.stash[RUN_KIND_KEY] = name_kind(call.excinfo and call.excinfo.value)
    return report
