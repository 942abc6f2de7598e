"""`callgrade score` on files that are scored through a store: stopped, killed, started again, and the same in the end."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.cli.inputs import read_inputs
from service.cli.runfiles import fingerprint, forget, held, runs_folder
from tests.batches.process import order_of, request, until
from tests.cli.cli_run import Run
from tests.cli.served import COMMAND, environment
from tests.faults.provider import Provider, serving
from tests.forked import Command, Forked

IN_FLIGHT = 16
GREETING = {"messages": [{"role": "user", "content": "Hi"}], "expected": {"calls": "none"}, "judges": "off"}
UNKNOWN = {"trace": {"format": "openai", "messages": []}, "rubric": "nobodys"}
UNJUDGED = json.dumps(GREETING).encode() + b"\n"
OTHERS = [b"{x}\n", json.dumps(UNKNOWN).encode() + b"\n", UNJUDGED, b"[]\n"]


def write(path: Path, items: int) -> None:
    """Records for a judge, with some among them that cannot be read, cannot be scored, or need no judge."""
    found = [json.dumps(request(n)).encode() + b"\n" for n in range(items)]
    path.write_bytes(b"".join([*found[: items // 3], *OTHERS, *found[items // 3 :]]))


def told_alike(reports: bytes) -> bytes:
    """Reports without what differs from run to run: how long a judge took, and what it took where it was asked before."""
    return re.sub(
        rb'"(latency_ms|cache|cache_hits|cost_usd|tokens_in|tokens_out)":("\w+"|[0-9.]+|null)', b'"":0', reports
    )


class Runs:
    """Runs of one command as a process."""

    def __init__(self, folder: Path, provider: Provider) -> None:
        self.folder = folder
        self.provider = provider
        self.environ = environment(
            folder, provider, CALLGRADE_BATCH_IN_FLIGHT=str(IN_FLIGHT), CALLGRADE_BATCH_CHUNK="20"
        )

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        command = [*COMMAND, "score", "in.jsonl", "--resumable", *args]
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )

    def run(self, *args: str) -> tuple[int, bytes, str]:
        """Exit code, standard output and standard error."""
        with self.start(*args) as process:
            out, err = process.communicate(timeout=120)
        return process.returncode, out, err.decode()

    def until_asked(self, count: int, process: subprocess.Popen[bytes]) -> None:
        """Waits until judges were asked so many questions."""
        until(lambda: len(self.provider.requests) >= count or process.poll() is not None)
        assert process.poll() is None, process.communicate()

    def stores(self) -> list[str]:
        return [path.name for path in (self.folder / "runs").iterdir()]


@pytest.fixture
def heard() -> Iterator[None]:
    """A shell that starts tests in the background has them, and what they start, ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.chaos
@pytest.mark.usefixtures("heard")
def test_a_run_that_is_stopped_and_killed_pays_nothing_twice(tmp_path: Path) -> None:
    items = 300
    write(tmp_path / "in.jsonl", items)
    provider = Provider(latency=0.1)
    with serving(provider):
        runs = Runs(tmp_path, provider)
        first = runs.start("--format", "ndjson")
        runs.until_asked(items // 5, first)
        first.send_signal(signal.SIGINT)
        out, err = first.communicate(timeout=60)
        assert first.returncode == 130
        assert out == b""
        assert re.search(rb"stopped: \d+ of %d scored; the same command goes on from there\n" % (items + 2), err)
        assert b"Traceback" not in err
        stopped = len(provider.requests)
        second = runs.start("--format", "ndjson")
        runs.until_asked(stopped + items // 5, second)
        second.kill()
        _, err = second.communicate(timeout=60)
        assert re.search(rb"going on: \d+ of %d scored already" % (items + 2), err)
        code, out, err = runs.run("--format", "ndjson")
        assert code == 5
        assert "going on: " in err
        paid = Counter(order_of(one.body) for one in provider.requests)
        assert set(paid) == set(range(items))
        assert sum(paid.values()) <= items + IN_FLIGHT
        assert runs.stores() == []
        environ = runs.environ | {"CALLGRADE_HOME": str(tmp_path / "other")}
        provider.latency = 0.0
        plain = subprocess.run(
            [*COMMAND, "score", "in.jsonl", "--format", "ndjson"],
            cwd=tmp_path,
            env=environ,
            capture_output=True,
            check=False,
        )
    assert plain.returncode == 5
    assert told_alike(out) == told_alike(plain.stdout)
    bad = [json.loads(line)["error"]["line"] - items // 3 for line in out.splitlines() if b'"error":{' in line]
    assert bad == [1, 2, 4]


@pytest.mark.parametrize("form", ["table", "junit"])
def test_the_output_is_the_same_byte_for_byte(run: Run, tmp_path: Path, form: str) -> None:
    write(tmp_path / "in.jsonl", 0)
    (tmp_path / "in.json").write_text(json.dumps([json.loads(UNJUDGED), {"messages": [], "id": "x"}, 7], indent=1))
    options = ("score", "in.jsonl", "in.json", "--format", form)
    through = run(*options, "--resumable")
    plain = run(*options, "--no-resumable")
    assert through.code == plain.code == 5
    assert through.raw == plain.raw
    first, _, rest = through.err.partition("\n")
    assert first == "4 records to score; if this is stopped, the same command goes on from there"
    assert rest == plain.err


@pytest.mark.parametrize("kept", ["--resumable", "--no-resumable"])
def test_a_key_that_is_refused_is_a_matter_of_configuration(tmp_path: Path, kept: str) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"".join(json.dumps(request(n)).encode() + b"\n" for n in range(30)))
    with serving(Provider()) as provider:
        refused_at_first = {"CALLGRADE_JUDGE_MODEL": "openai/fault-401-x1", "CALLGRADE_JUDGE_IN_FLIGHT": "1"}
        environ = environment(tmp_path, provider, **refused_at_first)
        args = "score", str(tmp_path / "in.jsonl"), kept
        command = Command("service.cli", args, environ, tmp_path / "said.log")
        assert Forked(command).wait(120) == 4
        assert len(provider.requests) == 1
        assert "no key that its provider accepts" in command.log.read_text()
        assert Forked(command).wait(120) == 0  # the key is mended, and the same command goes on
        assert "30 pass" in command.log.read_text()


@pytest.mark.parametrize("kept", ["--resumable", "--no-resumable"])
def test_so_it_is_where_a_judge_must_answer(tmp_path: Path, kept: str) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps(request(0, on_judge_error="error")))
    with serving(Provider()) as provider:
        environ = environment(tmp_path, provider, CALLGRADE_JUDGE_API_BASE=provider.base("fault-401"))
        command = Command("service.cli", ("score", str(tmp_path / "in.jsonl"), kept), environ, tmp_path / "said.log")
        assert Forked(command).wait(120) == 4
    assert "unauthorized" in command.log.read_text()


def test_a_judge_that_must_answer_and_does_not_ends_the_run_and_leaves_it_to_be_taken_up(tmp_path: Path) -> None:
    records = [request(n, on_judge_error="error") for n in range(30)]
    (tmp_path / "in.jsonl").write_bytes(b"".join(json.dumps(one).encode() + b"\n" for one in records))
    with serving(Provider()) as provider:
        environ = environment(tmp_path, provider, CALLGRADE_JUDGE_API_BASE=provider.base("fault-refusal"))
        args = "score", str(tmp_path / "in.jsonl"), "--resumable", "--format", "ndjson"
        command = Command("service.cli", args, environ, tmp_path / "said.log")
        assert Forked(command).wait(120) == 1
    said = command.log.read_text()
    assert "a judge gave no verdict" in said
    assert '"report"' not in said
    assert [path for path in (tmp_path / "runs").iterdir() if path.suffix == ".db"]


def test_a_run_with_other_options_is_another_run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in.jsonl", 3)
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", "openai/gpt-fine")

    def name(**options: Any) -> str:
        return fingerprint(read_inputs([Path("in.jsonl")], **options))

    first = name()
    monkeypatch.setenv("CALLGRADE_JUDGE_API_KEY", "another")
    monkeypatch.setenv("CALLGRADE_JUDGE_IN_FLIGHT", "3")
    assert name() == first
    others = [name(judges="cached"), name(rubric="arcade"), name(input_format="openai")]
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", "openai/other")
    others.append(name())
    write(tmp_path / "in.jsonl", 4)
    others.append(name())
    assert len({first, *others}) == 6


@pytest.mark.parametrize(
    ("items", "args", "judged", "through"),
    [
        (999, (), True, False),
        (1_000, (), True, True),
        (1_000, ("--judges", "off"), True, False),
        (1_000, (), False, False),
        (1_000, ("--no-resumable",), True, False),
    ],
)
def test_which_runs_can_be_taken_up_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, items: int, args: tuple[str, ...], judged: bool, through: bool
) -> None:
    Path("in.jsonl").write_bytes(UNJUDGED * items)  # in the empty folder of `run`
    if judged:
        monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", "openai/gpt-fine")
    ran = run("score", "in.jsonl", "--format", "ndjson", *args)
    assert ran.code == 0
    assert len(ran.lines) == items
    assert ("if this is stopped" in ran.err) == through


def test_of_two_at_once_the_second_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(UNJUDGED)
    inputs = read_inputs([Path("in.jsonl")])
    with held(runs_folder(inputs.settings), fingerprint(inputs)) as store:
        ran = run("score", "in.jsonl", "--resumable")
        assert ran.code == 4
        assert "another callgrade is scoring these files with these options already" in ran.err
        assert ran.raw == b""
        forget(store)
    assert run("score", "in.jsonl", "--resumable").code == 0
    assert list(store.parent.iterdir()) == []


def test_standard_input_cannot_be_read_again(run: Run) -> None:
    ran = run("score", "-", "--resumable", stdin=UNJUDGED)
    assert ran.code == 4
    assert "--resumable: only files can be read once more" in ran.err


def test_an_output_that_cannot_be_written_is_told_before_anything_is_scored(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(UNJUDGED)
    ran = run("score", "in.jsonl", "--resumable", "--output", "none/out")
    assert ran.code == 4
    assert "records to score" not in ran.err
    assert run("score", "in.jsonl", "--resumable", "--output", "in.jsonl").code == 4
    assert (tmp_path / "in.jsonl").read_bytes() == UNJUDGED
