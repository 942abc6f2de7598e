"""The pytest plugin, as pytest itself runs it: failures, repeats, cassettes, xdist, JUnit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import service.asking.model
import service.calibration.label_exchange
import service.testing.checks
import service.testing.repeats
import service.testing.sessions  # noqa: F401 (loaded here, for pytester forgets what a run loads, and numpy loads once)
from service.errors import InputError
from service.testing.cassette import CassetteHead, read_cassette, save_cassette
from service.testing.checks import TraceFailure, assert_passes
from tests.docs.pages import ROOT
from tests.faults.provider import Provider, serving
from tests.launchers import find_launchers

TRACES = """
import json

def trace(order="9104", text=None):
    messages = [
        {"role": "user", "content": "Where is order 9104?"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "get_order", "arguments": json.dumps({"order_id": order})}}]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"status": "shipped"}'},
        *([] if text is None else [{"role": "assistant", "content": text}]),
    ]
    return {"id": "order", "messages": messages}

EXPECTED = {"calls": [{"tool": "get_order", "args": {"order_id": "9104"}}]}
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder of tests with traces at hand."""
    for name in ("CALLGRADE_JUDGE_MODEL", "CALLGRADE_JUDGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CALLGRADE_HOME", str(pytester.path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(traces=TRACES)
    return pytester


OPTIONS = ("-p", "pytest_callgrade", "-p", "no:cacheprovider", "-p", "no:hypothesispytest", "-p", "no:schemathesis")


def run(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    return project.runpytest_inprocess(*OPTIONS, *options)


def run_apart(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    """In a process of its own: what loads a client of models, or asks what was loaded."""
    return project.runpytest_subprocess(*OPTIONS, *options)


def test_a_failure_shows_the_steps_and_the_findings(project: pytest.Pytester):
    project.makepyfile(
        """
        from traces import EXPECTED, trace

        def test_right(callgrade):
            assert callgrade.check(trace(), expected=EXPECTED).verdict == "pass"

        def test_wrong(callgrade):
            callgrade.check(trace("9140"), expected=EXPECTED)
        """
    )
    done = run(project)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        [
            "E *order does not pass four_step@*: failed at arguments, score *",
            'E * arguments  fail *wrong_argument: order_id: expected "9104", got "9140" (step 1,',
            "E * get_order: /steps/0/call/arguments/order_id)",
            "2 traces checked: 1 pass, 1 fail",
        ]
    )
    assert "checks.py" not in done.stdout.str()


UNDECIDED = {
    "nobody looked at the text": (
        "trace(text='It has shipped.'), expected=EXPECTED",
        "*order does not pass four_step@*: undecided, score *",
    ),
    "nothing applies": (
        "{'events': []}, rubric='bfcl_ast'",
        "*the trace does not pass bfcl_ast@*: not applicable: *",
    ),
}


@pytest.mark.parametrize("case", UNDECIDED)
def test_what_is_open_is_no_pass(project: pytest.Pytester, case: str):
    arguments, message = UNDECIDED[case]
    project.makepyfile(f"from traces import *\n\ndef test_it(callgrade):\n    callgrade.check({arguments})")
    done = run(project)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([f"E {message}"])


def test_undecided_passes_where_it_is_allowed_and_is_counted(project: pytest.Pytester):
    project.makepyfile(
        """
        from traces import EXPECTED, trace

        SHIPPED = trace(text="It has shipped.")

        def test_allowed(callgrade):
            callgrade.check(SHIPPED, expected=EXPECTED, allow_undecided=True)

        def test_code_alone(callgrade):
            callgrade.check(SHIPPED, expected=EXPECTED, judges="off")
        """
    )
    done = run(project)
    done.assert_outcomes(passed=2)
    done.stdout.fnmatch_lines(["2 traces checked: 1 pass, 1 undecided", "judges were off for 1 trace: *"])


REPEATED = """
    from traces import EXPECTED, trace
    import pytest

    ORDERS = iter({orders})

    @pytest.fixture
    def order():
        return next(ORDERS)

    @pytest.mark.callgrade(repeats=5, at_least=4)
    def test_agent(callgrade, order):
        callgrade.check(trace(order), expected=EXPECTED)
"""


@pytest.mark.parametrize(
    ("wrong", "outcome", "line"),
    [
        (0, "passed", "*test_agent: 5 of 5 runs passed; at least 4 must"),
        (1, "passed", "*test_agent: flaky, 4 of 5 runs passed; at least 4 must"),
        (2, "failed", "*3 of 5 runs passed; at least 4 must"),
    ],
)
def test_a_test_with_repeats_passes_where_enough_runs_do(project: pytest.Pytester, wrong: int, outcome: str, line: str):
    project.makepyfile(REPEATED.format(orders=["1"] * wrong + ["9104"] * (5 - wrong)))
    done = run(project)
    done.assert_outcomes(**{outcome: 1})
    done.stdout.fnmatch_lines([line])


def test_a_run_that_pytest_fails_without_an_exception_is_no_pass(project: pytest.Pytester):
    project.makepyfile(
        """
        import pytest

        @pytest.mark.xfail(strict=True)
        @pytest.mark.callgrade(repeats=2, at_least=1)
        def test_known_to_fail():
            pass
        """
    )
    run(project).assert_outcomes(failed=1)


def test_a_run_that_skips_hides_no_failure_before_it(project: pytest.Pytester):
    project.makepyfile(
        """
        import pytest
        RUNS = []

        @pytest.mark.callgrade(repeats=3)
        def test_skips():
            RUNS.append(1)
            assert len(RUNS) > 1
            pytest.skip("no agent any longer")
        """
    )
    run(project).assert_outcomes(failed=1)


def test_a_reply_may_hold_any_line_separator(tmp_path: Path):
    file, rows = tmp_path / "cassette.jsonl", {"k": json.dumps("a\u2028b\x85c")}
    save_cassette(file, CassetteHead("m"), rows)
    found = read_cassette(file)
    assert found is not None
    assert found.rows == rows


def test_what_stands_beside_the_members_of_a_trace_is_held_against_it():
    call = {"id": "c1", "type": "function", "function": {"name": "unlock", "arguments": "{}"}}
    tools = [{"type": "function", "function": {"name": "unlock", "parameters": {"type": "object"}}}]
    bare = {
        "messages": [{"role": "user", "content": "Lock."}, {"role": "assistant", "tool_calls": [call]}],
        "tools": tools,
    }
    code = {"extends": "four_step", "without": ["call_decision", "tool_selection", "argument_plausibility"]}
    assert_passes(bare, rubric=code, judges="off")
    with pytest.raises(TraceFailure):
        assert_passes({**bare, "expected": {"calls": [{"tool": "lock"}]}}, rubric=code, judges="off")


def test_an_expectation_that_says_nothing_is_refused_and_not_passed_over(tmp_path: Path):
    (tmp_path / "expected.yaml").write_text("null\n")
    with pytest.raises(InputError, match="expected an object, not null"):
        assert_passes([], expected=tmp_path / "expected.yaml", judges="off")


def test_a_run_that_crashes_is_no_noise(project: pytest.Pytester):
    project.makepyfile(
        """
        import pytest
        RUNS = []

        @pytest.fixture(scope="module")
        def service():
            yield
            RUNS.append("torn down")

        @pytest.mark.callgrade(repeats=3, at_least=1)
        def test_crash(service):
            RUNS.append("run")
            if len(RUNS) == 2:
                raise ConnectionError("no agent")

        def test_after(service):
            assert RUNS == ["run", "run"]
        """
    )
    done = run(project)
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["E *ConnectionError: no agent"])


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("repeats=2, at_least=3", "*expected repeats >= at_least >= 1; got repeats=2, at_least=3"),
        ("repeat=2", "*takes the keyword arguments repeats=, at_least=; not repeat"),
    ],
)
def test_a_marker_that_cannot_be_meant_stops_the_run(project: pytest.Pytester, mark: str, message: str):
    project.makepyfile(f"import pytest\n\n@pytest.mark.callgrade({mark})\ndef test_it():\n    pass")
    done = run(project)
    assert done.ret == pytest.ExitCode.INTERRUPTED
    done.stdout.fnmatch_lines([message])


JUDGED = """
    from traces import EXPECTED, trace

    def test_first(callgrade):
        callgrade.check(trace(text="It has shipped."), expected=EXPECTED)

    def test_second(callgrade):
        callgrade.check(trace(text="It has been shipped."), expected=EXPECTED)
"""


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """A provider whose judge is content with everything."""
    with serving(Provider()) as server:
        monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", "openai/good")
        monkeypatch.setenv("CALLGRADE_JUDGE_API_BASE", server.base())
        monkeypatch.setenv("CALLGRADE_JUDGE_API_KEY", "sk-test")
        yield server


def test_what_a_judge_said_is_recorded_by_several_processes_and_replayed(
    project: pytest.Pytester, judge: Provider, monkeypatch: pytest.MonkeyPatch
):
    project.makepyfile(JUDGED)
    several = ("--dist", "load", "--tx", f"2*popen//python={find_launchers() / 'python'}")
    recorded = run_apart(project, "--callgrade-record", *several)
    recorded.assert_outcomes(passed=2)
    recorded.stdout.fnmatch_lines(["judged: 2 replies; not on the cassette: 0", "recorded: 2 new of 2 replies"])
    asked = len(judge.requests)
    for name in ("CALLGRADE_JUDGE_MODEL", "CALLGRADE_JUDGE_API_BASE", "CALLGRADE_JUDGE_API_KEY"):
        monkeypatch.delenv(name)
    replayed = run(project)
    replayed.assert_outcomes(passed=2)
    replayed.stdout.fnmatch_lines(["judged: 2 replies; not on the cassette: 0"])
    assert len(judge.requests) == asked > 0
    assert "127.0.0.1" not in (project.path / "callgrade-cassette.jsonl").read_text("utf-8")


def test_a_question_that_is_not_on_the_cassette_is_open_and_said(project: pytest.Pytester):
    (project.path / "callgrade-cassette.jsonl").write_text('{"model": "openai/good"}\n', "utf-8")
    project.makepyfile(JUDGED)
    done = run(project)
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(
        [
            "E *1 question for a judge not on the cassette callgrade-cassette.jsonl: record with *",
            "judged: 0 replies; *: 2",
        ]
    )


@pytest.mark.parametrize(
    ("cassette", "options", "message"),
    [
        ("", ("--callgrade-record",), "*CALLGRADE_JUDGE_MODEL: --callgrade-record asks a judge, and no model is set*"),
        ('{"model": "m"}\n{"key": 1}', (), "*callgrade-cassette.jsonl:2: expected*"),
        (
            '{"model": "m"}\n{"key": "k", "reply": 1}\n{"key": "k", "reply": 1}\n{"key": "k", "reply": 2}',
            (),
            "*callgrade-cassette.jsonl:4: another line has a different reply to the same question*",
        ),
        ("[]", (), "*callgrade-cassette.jsonl:1: expected the first line of a cassette*"),
    ],
)
def test_what_cannot_be_recorded_or_replayed_is_an_error(
    project: pytest.Pytester, cassette: str, options: tuple[str, ...], message: str
):
    if cassette:
        (project.path / "callgrade-cassette.jsonl").write_text(cassette, "utf-8")
    project.makepyfile(JUDGED)
    done = run(project, *options)
    done.assert_outcomes(errors=2)
    done.stdout.fnmatch_lines([message])


def test_junit_has_what_was_checked(project: pytest.Pytester):
    project.makepyfile(REPEATED.format(orders=["1"] * 5))
    run(project, "--junit-xml", "junit.xml")
    found = ET.parse(project.path / "junit.xml").iter("property")  # noqa: S314 (our own file)
    told = [(one.get("name"), one.get("value")) for one in found]
    assert told.count(("callgrade_verdict", "fail")) == 5
    assert ("callgrade_first_failing_stage", "arguments") in told
    assert ("callgrade_runs", "0 of 5 runs passed; at least 4 must") in told


def test_what_is_not_used_is_not_imported(project: pytest.Pytester):
    project.makepyfile("import sys\n\ndef test_it():\n    assert not {'service', 'pydantic'} & sys.modules.keys()")
    done = run_apart(project)
    done.assert_outcomes(passed=1)


def test_the_assert_function_of_other_frameworks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    import callgrade

    monkeypatch.setenv("CALLGRADE_HOME", str(tmp_path))
    bare = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
    callgrade.assert_passes(bare, expected={"calls": "none"}, judges="off")
    with pytest.raises(AssertionError, match=re.compile("failed at decide.*stage +verdict", re.DOTALL)):
        callgrade.assert_passes(bare, expected={"calls": [{"tool": "greet"}]}, judges="off")
