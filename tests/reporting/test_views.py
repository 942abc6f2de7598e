"""No view says more of a trace than its report: the laws of what is printed, over random reports in every view."""

from __future__ import annotations

import copy
import io
import re
from collections.abc import Iterator
from html import unescape
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from service import Report, conclude, plan, score
from service.cli.ci import GitHub, JUnit
from service.cli.inputs import RecordRequest
from service.cli.scoring import ScoredRecord
from service.cli.screen import build_console
from service.cli.tally import Tally
from service.cli.views import ResultTable, show_steps
from service.core.outcome import Errored, Scored, Skipped
from service.reading.packaged_files import find_resource, read_yaml
from service.reading.places import RecordPlace
from service.reading.request import read_request
from service.reporting.breaks import describe_break
from service.reporting.numbers import render_number, render_share
from service.reporting.statements import find_state, list_reasons, list_statements
from service.testing.checks import render_failure
from service.web.run_file import render_run_file
from service.web.trace.build import ScoredTrace
from service.web.trace.run import build_run_view
from service.web.trace.stored import read_sent
from tests.bulk import examples
from tests.core.strategies import Json, requests

LAW = settings(max_examples=examples(60), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
FOUR_STEP = read_yaml(find_resource("rubrics", "four_step.yaml").read_text("utf-8"), source="four_step.yaml")
JUDGED = st.one_of(
    st.floats(0, 1).map(lambda value: Scored(value, value >= 0.8)),
    st.floats(0, 1).map(lambda value: Scored(value, True)),
    st.sampled_from([Errored("provider", "no answer came"), Skipped("not_captured", "nothing to see")]),
    st.just(Skipped("human", "so close that a human decides")),
)


class Case(NamedTuple):
    """A request and a report on it."""

    request: Json
    report: Report


@st.composite
def rubrics(draw: st.DrawFn, least: float | None) -> Json:
    """The four steps under other thresholds and weights, so that a stage may pass of which a criterion failed."""
    criteria = copy.deepcopy(FOUR_STEP["criteria"])
    for one in criteria:
        one |= {"weight": draw(st.sampled_from([1, 3, 0])), "must_pass": draw(st.booleans())}
        one["blocking"] = one.get("blocking", False) and draw(st.booleans())
    criteria[0]["weight"] = 1
    least = draw(st.sampled_from([0, 0.3, 0.8])) if least is None else least
    thresholds = {"fail": draw(st.sampled_from([0, 0.5, 0.8])), "warn": 0.9, "min_coverage": least}
    verdict = draw(st.sampled_from(["score", "worst_stage"]))
    return {**FOUR_STEP, "id": "own", "criteria": criteria, "thresholds": thresholds, "verdict": verdict}


@st.composite
def cases(draw: st.DrawFn, *, least: float | None = None, errors: bool = False) -> Case:
    """A random request, some results of it errors, and judges that answered at random, not at all or were off."""
    request = draw(requests(least=int(errors)))
    if least is not None or draw(st.booleans()):
        request["rubric"] = draw(rubrics(least))
    for event in request["trace"]["events"]:
        if "call" in event and (errors or draw(st.integers(0, 3)) == 0):
            event["result"] = draw(st.sampled_from([{"error": "no such order"}, {"status": 500, "message": "down"}]))
    mode = draw(st.sampled_from(["off", "none", "live"]))
    if mode == "off":
        return Case(request, score({**request, "judges": "off"}))
    made = plan(request)
    replies = {ask.key: draw(JUDGED) for ask in made.asks if draw(st.integers(0, 4))} if mode == "live" else None
    return Case(request, conclude(made, replies))


def score_calls(*names: str, **request: Any) -> Case:
    """A case of calls without arguments, the result of each an error."""
    events = [{"call": {"name": name, "arguments": {}}, "result": {"error": "no such order"}} for name in names]
    trace = {
        "format": "callgrade",
        "id": "t",
        "events": [{"user": "Go."}, *events],
        "tools": [{"name": "look"}, {"name": "pay"}],
    }
    request = {"trace": trace, "judges": "off", **request}
    return Case(request, score(request))


SOFT = score_calls(
    "look",
    rubric={
        "id": "soft",
        "criteria": [
            {"id": "ban", "stage": "select", "weight": 0, "check": {"kind": "disallowed"}},
            {"id": "name", "stage": "select", "check": {"kind": "tool_name"}},
            {"id": "args", "stage": "arguments", "must_pass": True, "check": {"kind": "arguments"}},
        ],
    },
    expected={"calls": [{"tool": "look", "args": {"a": 1}}], "disallowed": [{"tool": "look"}]},
)
"""A ban is broken at a stage that passes all the same, and the trace fails at a later one."""
NAMES = {"id": "names", "criteria": [{"id": "name", "stage": "select", "check": {"kind": "tool_name"}}]}
RIGHT = score_calls("look", "look", rubric=NAMES, expected={"calls": [{"tool": "look"}, {"tool": "look"}]})
"""The right calls, with errors as results."""
HALF = score_calls("look", expected={"ordered": [{"tool": "look"}, {"tool": "pay"}]})
"""One of two calls in an order is missing: the order scores 0.50 without a finding."""


def build_record(case: Case) -> ScoredRecord:
    place = RecordPlace("in.jsonl", 1)
    return ScoredRecord(
        1, RecordRequest(place, False, case.request, case.request, read_request(case.request), None), case.report
    )


def show_terminal(case: Case) -> str:
    buffer = io.StringIO()
    show_steps(build_console(buffer, width=5_000, plain=True), case.report, head="it: ")
    return buffer.getvalue()


def show_rows(case: Case) -> str:
    """The table of several traces."""
    stream, tally = io.BytesIO(), Tally()
    shown = ResultTable(stream, tally)
    for _ in range(2):
        tally.add(build_record(case))
        shown.add(build_record(case))
    shown.close()
    return stream.getvalue().decode()


def show_junit(case: Case) -> str:
    stream = io.BytesIO()
    junit = JUnit(stream)
    junit.add(build_record(case))
    junit.close()
    return unescape(stream.getvalue().decode())


def show_page(case: Case) -> str:
    return render_run_file(build_run_view("run", [ScoredTrace(case.report, *read_sent(case.request))], frozenset([0])))


def list_lines(page: str) -> list[str]:
    """What stands in each block of a page, on a line each, without the list of stages."""
    body = re.sub(r'(?s)<ol class="stages".*?</ol>', "", page[page.index("<main") :])
    blocks = re.split(r"</?(?:li|p|tr|summary|h\d|div|ul|ol|table|section|details|dd|dt)\b[^>]*>", body)
    return [" ".join(unescape(re.sub(r"<[^>]*>", " ", one)).split()) for one in blocks]


def say(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="module")
def show_github(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The annotations of a case and its row in the step summary."""
    file = tmp_path_factory.mktemp("github") / "summary.md"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GITHUB_STEP_SUMMARY", str(file))

        def show(case: Case) -> str:
            printed = io.StringIO()
            patch.setattr("sys.stdout", printed)
            tally = Tally()
            tally.add(build_record(case))
            github = GitHub(None, tally)
            github.add(build_record(case))
            github.close()
            written = re.sub(r"\\([^\w\s])", r"\1", file.read_text("utf-8"))
            file.unlink()
            return re.sub(r"%0A", "\n", printed.getvalue()) + written

        yield show


@LAW
@given(case=cases())
@example(case=HALF)
def test_passed_is_said_only_of_what_passed_in_every_outcome(case: Case) -> None:
    bad = {one.criterion for one in list_statements(case.report) if one.state not in ("passed", "absent")}
    page = show_page(case)
    lines = [line for line in list_lines(page) if not line.startswith(("passed here:", "✓"))]
    for line in [*show_terminal(case).splitlines(), *show_rows(case).splitlines(), *lines]:
        praised = line.partition(": passed")[0] if ": passed" in line else line if "✓" in line else ""
        said = re.findall(r"\w+", praised.rpartition("  ")[2])
        assert not bad & set(said), line
    steps = {step.index: step for step in case.report.steps}
    for index, part in re.findall(r'(?s)id="t1-step-(\d+)"(.*?)</details>\s*(?=<|$)', page):
        here = steps[int(index)].outcomes
        named = re.findall(r'outcome pass"><span class="sign">✓</span> <b>(\w+)</b>', part)
        named += re.findall(r"\w+", "".join(re.findall(r"<li>passed here: ([^<]*)</li>", part)))
        assert {name: find_state(here[name]) for name in named} == dict.fromkeys(named, "passed")


@LAW
@given(case=cases())
def test_what_has_no_score_is_called_what_it_is(case: Case) -> None:
    states: dict[str, set[str]] = {}
    for one in list_statements(case.report):
        states.setdefault(one.criterion, set()).add(one.state)
    for text in (show_terminal(case), show_rows(case), render_failure(case.report), show_page(case)):
        assert "not looked at" not in text
        assert "which is fine" not in text
    means = {"not checked": {"unchecked", "blocked"}, "needs a judge": {"open"}, "undecided: ": {"open"}}
    for line in show_terminal(case).splitlines():
        names, _, words = line.rpartition("  ")[2].partition(": ")
        for start, allowed in means.items():
            if words.startswith(start):
                assert all(states[name] & allowed for name in names.split(", ")), line


def list_views(case: Case, show_github: Any) -> dict[str, str]:
    found = {
        "terminal": show_terminal(case),
        "rows": show_rows(case),
        "junit": show_junit(case),
        "pytest": render_failure(case.report),
        "github": show_github(case),
        "page": " \n ".join(list_lines(show_page(case))),
    }
    return {name: say(text) for name, text in found.items()}


@LAW
@given(case=cases())
@example(case=SOFT)
@example(case=HALF)
def test_what_failed_first_is_said_first(show_github: Any, case: Case) -> None:
    report = case.report
    if report.verdict != "fail":
        return
    first, *others = [say(one.words) for one in list_reasons(report)]
    stage = {one.criterion: one.stage for one in list_statements(report)}
    for name, text in list_views(case, show_github).items():
        assert first in text, (name, first)
        before = text[: text.index(first)]
        assert not [words for words in others if words not in first and words in before], name
    failed = [one for one in list_statements(report) if one.state == "failed"]
    if report.first_failing_stage and failed:
        stages = [stage[one.criterion] for one in failed]
        assert report.first_failing_stage not in stages[stages.count(report.first_failing_stage) :]
        assert describe_break(report).stage == report.first_failing_stage


@LAW
@given(case=cases(least=0.95))
def test_a_score_of_too_little_is_no_figure(show_github: Any, case: Case) -> None:
    report = case.report
    if report.coverage is None or report.coverage >= report.rubric.min_coverage:
        return
    views = list_views(case, show_github)
    figure = re.compile(rf"(?i)score {re.escape(render_number(report.score))}")
    assert not [name for name, text in views.items() if figure.search(text)]
    assert describe_break(report).score is None
    for name in ("terminal", "pytest", "junit", "page"):
        assert f"({render_share(report.coverage)} checked)" in views[name], name
        assert re.search(r"(?i)score between \d\.\d\d and \d\.\d\d", views[name]), name
    assert re.search(rf"(fail|undecided) +- +{render_share(report.coverage)} ", show_rows(case))


@LAW
@given(case=cases(errors=True))
@example(case=RIGHT)
def test_no_tick_stands_on_a_call_whose_result_is_an_error(case: Case) -> None:
    page = show_page(case)
    for index, event in enumerate([one for one in case.request["trace"]["events"] if "call" in one]):
        if not isinstance(event.get("result"), dict) or not event["result"].keys() & {"error", "status"}:
            continue
        summary = re.search(rf'(?s)id="t1-step-{index}".*?<summary>(.*?)</summary>', page)
        strip = re.search(rf'<a class="\w+" href="#t1-step-{index}" title.*?</a>', page)
        assert summary
        assert "✓" not in summary[1] + (strip[0] if strip else "")


def test_the_examples_reach_what_the_laws_are_about() -> None:
    seen: set[str] = set()

    @settings(LAW, max_examples=examples(300))
    @given(case=cases())
    def look(case: Case) -> None:
        report = case.report
        seen.update([report.verdict, *[f"{stage.verdict} stage" for stage in report.stages]])
        seen.update(one.state for one in list_statements(report))
        seen.update(["little"] if report.coverage is not None and report.coverage < report.rubric.min_coverage else [])

    look()
    assert seen >= {"pass", "warn", "fail", "undecided", "little", "failed", "blocked", "open", "unchecked", "absent"}
