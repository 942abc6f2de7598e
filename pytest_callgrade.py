"""The pytest plugin of callgrade: the fixture `callgrade`, the marker of the same name, and `--callgrade-record`.

pytest loads this file for every run where callgrade is installed, so it imports nothing of callgrade itself: that is done
when a test first asks for the fixture, or has the marker.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from service.testing.checks import TraceChecker
    from service.testing.sessions import CheckSession

MARK = "callgrade"
ROWS = "callgrade_rows"

SESSION = pytest.StashKey["CheckSession"]()


class CheckReports:
    """What tests told of their checks and what was recorded, in the process that sums up. With xdist all of it arrives there."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tests: list[tuple[str, Any]] = []
        self._recorded: dict[str, Any] = {}
        self._kept = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keeps what a test tells."""
        if report.when == "teardown" and any(name.startswith("callgrade_") for name, _ in report.user_properties):
            self._tests.append((report.nodeid, list(report.user_properties)))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object) -> None:  # noqa: ARG002
        """What a worker of xdist has recorded."""
        self._add(getattr(node, "workeroutput", {}).get(ROWS))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Writes what was recorded, or hands it to the process that does."""
        if SESSION in self._config.stash:
            self._add(self._config.stash[SESSION].close())
        output = getattr(self._config, "workeroutput", None)
        if output is not None:
            output[ROWS] = self._recorded
        elif self._recorded:
            from service.testing.cassette import CassetteHead, save_cassette  # noqa: PLC0415

            head = CassetteHead(**self._recorded["head"])
            self._kept = save_cassette(_find_cassette(self._config), head, self._recorded["added"])

    def _add(self, recorded: dict[str, Any] | None) -> None:
        if recorded:
            added = {**self._recorded.get("added", {}), **recorded["added"]}
            self._recorded = {"head": recorded["head"], "added": added}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Says what came of all checks."""
        if not self._tests:
            return
        from service.testing.sessions import summarize_properties  # noqa: PLC0415

        terminalreporter.section("callgrade")
        for line in summarize_properties(self._tests):
            terminalreporter.line(line)
        if self._recorded:
            terminalreporter.line(f"recorded: {len(self._recorded['added'])} new of {self._kept} replies")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option, and what stands in the file of settings."""
    group = parser.getgroup("callgrade", "traces of tool use")
    group.addoption(
        "--callgrade-record",
        action="store_true",
        help="ask the judge (CALLGRADE_JUDGE_MODEL) what the cassette lacks, and keep its replies",
    )
    parser.addini("callgrade_cassette", "file of the judge's replies", default="callgrade-cassette.jsonl")
    parser.addini("callgrade_judges", "off: take what code alone decides", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    text = "callgrade(repeats=1, at_least=repeats, cases=FILE): run several times; one test for each case (argument `case`)"
    config.addinivalue_line("markers", text)
    config.pluginmanager.register(CheckReports(config), "callgrade_reports")


@pytest.fixture
def callgrade(request: pytest.FixtureRequest) -> TraceChecker:
    """Scores traces: `callgrade.check(trace, expected=..., rubric=...)` fails the test where one does not pass."""
    from service.testing.checks import watch  # noqa: PLC0415 (not before a test asks for it)
    from service.testing.sessions import list_properties  # noqa: PLC0415

    properties = request.node.user_properties
    return watch(_open_session(request.config).checker, lambda report: properties.extend(list_properties(report)))


def _open_session(config: pytest.Config) -> CheckSession:
    from service.cli.exits import describe_error  # noqa: PLC0415
    from service.errors import CallgradeError  # noqa: PLC0415
    from service.testing.sessions import CheckSession  # noqa: PLC0415

    if SESSION not in config.stash:
        judges, record = config.getini("callgrade_judges"), bool(config.getoption("callgrade_record"))
        if judges not in ("", "off"):
            raise pytest.UsageError(f"callgrade_judges: expected off, or nothing; got {judges!r}")
        try:
            config.stash[SESSION] = CheckSession.open(_find_cassette(config), record=record, off=judges == "off")
        except CallgradeError as error:
            raise pytest.UsageError(describe_error(error)) from None
    return config.stash[SESSION]


def _find_cassette(config: pytest.Config) -> Path:
    return config.rootpath / config.getini("callgrade_cassette")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each case of the file that the marker names, beside the test's own file."""
    marks = list(metafunc.definition.iter_markers(MARK))
    if not marks:
        return
    from service.cli.exits import describe_error  # noqa: PLC0415
    from service.errors import CallgradeError  # noqa: PLC0415
    from service.testing.cases import read_cases  # noqa: PLC0415
    from service.testing.repeats import read_mark, read_plan  # noqa: PLC0415

    try:
        mark = read_mark(marks)
        read_plan(mark)
        file = mark.get("cases")
        cases = [] if file is None else read_cases(metafunc.definition.path.parent / str(file))
    except CallgradeError as error:
        raise pytest.Collector.CollectError(describe_error(error, where=metafunc.definition.nodeid)) from None
    except ValueError as error:
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {error}") from None
    if cases:
        metafunc.parametrize("case", [case.value for case in cases], ids=[case.name for case in cases])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Runs a test with `repeats` as often as it says, and reports it once."""
    marks = list(item.iter_markers(MARK))
    if not marks:
        return None
    from service.testing.repeats import read_mark, read_plan, run_repeatedly  # noqa: PLC0415

    plan = read_plan(read_mark(marks))
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
    """Notes what a run of several came to."""
    report = yield
    if call.when == "call" and next(item.iter_markers(MARK), None) is not None:
        from service.testing.repeats import KIND, name_kind  # noqa: PLC0415

        item.stash[KIND] = name_kind(call.excinfo and call.excinfo.value)
    return report
