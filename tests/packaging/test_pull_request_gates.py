"""What runs in other people's CI: the script of the GitHub Action and the job for GitLab, on small repositories."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.pages import BIN, ROOT, Page
from tests.faults.provider import Provider, serving
from tests.launchers import find_launchers

ACTION = ROOT / ".github" / "actions" / "callgrade"
CASES = 30
ASKED = {"role": "user", "content": "Where is order 9104?"}
CALL = {"id": "c", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": "9104"}'}}
CALLED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOLD = [{"role": "tool", "tool_call_id": "c", "content": "{}"}, {"role": "assistant", "content": "It is on its way."}]


def case(number: int, *, right: bool) -> dict[str, Any]:
    """A case in which a call is due, and is made or not."""
    messages = [ASKED, CALLED, *TOLD] if right else [ASKED, TOLD[1]]
    return {"id": f"c{number}", "messages": messages, "expected": {"calls": [{"tool": "get_order"}]}}


def repository(folder: Path, *wrong: int) -> Path:
    """A folder with traces of which those of some numbers are wrong."""
    rows = [json.dumps(case(n, right=n not in wrong)) for n in range(CASES)]
    (folder / "traces.jsonl").write_text("\n".join(rows), "utf-8")
    return folder


def run(folder: Path, script: str, **more: str) -> subprocess.CompletedProcess[str]:
    environ = {
        "PATH": os.pathsep.join([str(find_launchers()), str(BIN), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        **more,
    }
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False
    )


def gate(folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """The last step of the action, with the inputs and what they are by default."""
    action = yaml.safe_load((ACTION / "action.yml").read_text("utf-8"))
    step = action["runs"]["steps"][-1]
    given = {
        name: inputs.get(value.split("inputs.")[1].split()[0], _default(action, value))
        for name, value in step["env"].items()
    }
    more = {name: inputs[name] for name in inputs if name.startswith("CALLGRADE_")}
    summary = str(folder / "summary.md")
    return run(folder, step["run"], GITHUB_ACTION_PATH=str(ACTION), GITHUB_STEP_SUMMARY=summary, **given, **more)


def _default(action: dict[str, Any], value: str) -> str:
    return action["inputs"][value.split("inputs.")[1].split(maxsplit=1)[0]].get("default", "")


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    """A folder with the reports of a run in which two cases failed."""
    made = run(repository(tmp_path, 0, 1), "callgrade score traces.jsonl --judges off --format ndjson -o before.ndjson")
    assert made.returncode == 2, made.stderr
    return tmp_path


@pytest.mark.parametrize(
    ("wrong", "code", "told"),
    [
        (range(12), 2, "::error title=callgrade%3A pass rate regressed::"),
        ((0, 1, 2), 2, "::error title=callgrade%3A regressed::c2: decide passed before and fails now: "),
        ((0,), 0, "::notice title=callgrade%3A pass rate within noise::"),
    ],
    ids=["regression", "one case", "nothing new"],
)
def test_the_action_stops_a_regression_and_nothing_else(baseline: Path, wrong: range, code: int, told: str):
    repository(baseline, *wrong)
    done = gate(baseline, traces="traces.jsonl", judges="off", baseline="before.ndjson")
    assert done.returncode == code, done.stdout + done.stderr
    assert told in done.stdout
    assert "::error file=traces.jsonl,line=1,title=c0%3A failed at decide" in done.stdout
    assert "Regressions" in (baseline / "summary.md").read_text("utf-8")


def test_the_action_asserts_after_a_regression_too(baseline: Path):
    repository(baseline, *range(12))
    more = {"baseline": "before.ndjson", "assertions": "pass_rate >= 0.99"}
    done = gate(baseline, traces="traces.jsonl", judges="off", **more)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "pass rate regressed" in done.stdout
    assert "Gate: failed" in done.stdout
    assert "Gate: failed" in (baseline / "summary.md").read_text("utf-8")


def test_the_action_gates_on_what_it_is_told_to(baseline: Path):
    repository(baseline, 0, 1, 2)
    more = {"baseline": "before.ndjson", "gate-on": "arguments score"}
    done = gate(baseline, traces="traces.jsonl", judges="off", **more)
    assert "mean score within noise" in done.stdout, done.stdout + done.stderr


def test_the_action_fails_with_a_broken_judge(baseline: Path):
    repository(baseline)
    with serving(Provider()) as judge:
        model = {"CALLGRADE_JUDGE_MODEL": "openai/judge", "CALLGRADE_JUDGE_API_BASE": judge.base("fault-500")}
        model |= {"CALLGRADE_JUDGE_API_KEY": "sk-test", "CALLGRADE_JUDGE_ATTEMPTS": "1"}
        done = gate(baseline, traces="traces.jsonl", baseline="before.ndjson", **model)
    assert done.returncode in (3, 4), done.stdout + done.stderr


@pytest.mark.parametrize(
    ("inputs", "code", "told"),
    [
        ({"baseline": "absent.ndjson"}, 4, "the baseline absent.ndjson is not there"),
        ({"baseline": "before.ndjson", "reports": "./before.ndjson"}, 4, "compared with themselves"),
        ({"baseline": "before.ndjson", "assertions": "pass_rate >= 0.9\npass_rate >= 0.99"}, 2, "0.99 | failed"),
    ],
    ids=["baseline lost", "baseline overwritten", "assertion"],
)
def test_the_action_fails_closed(baseline: Path, inputs: dict[str, str], code: int, told: str):
    done = gate(baseline, **{"traces": "traces.jsonl", "judges": "off", **inputs})
    assert done.returncode == code, done.stdout + done.stderr
    assert told in done.stdout + done.stderr


def test_the_job_of_gitlab_stops_a_regression(baseline: Path):
    repository(baseline, *range(12))
    (baseline / "callgrade-baseline.ndjson").write_bytes((baseline / "before.ndjson").read_bytes())
    job = yaml.safe_load(Page("docs/testing.md").block("gitlab"))["callgrade"]
    script = "\n".join(line for line in job["script"] if not line.startswith("pip "))
    done = run(baseline, f"set -e\n{script}")
    assert done.returncode == 2, done.stdout + done.stderr
    assert (baseline / job["artifacts"]["reports"]["junit"]).exists()
