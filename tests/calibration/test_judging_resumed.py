"""`callgrade calibrate judge` can be stopped at any time: what was written stays, and nothing of it is asked again."""

from __future__ import annotations

import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.calibration.prediction_files import PredictionBasis, build_basis_path, open_predictions
from service.calibration.predictions import Prediction, read_predictions
from service.cli.calibrating import judge_labels
from service.cli.exits import ExitCode
from service.errors import InputError, SettingsError
from tests.faults.provider import Provider, serving
from tests.forked import Command, Forked

ITEMS, REPEATS = 40, 2
ANSWERED = 25
"""As many requests are answered before the provider falls silent."""


def labels(folder: Path, *, count: int = ITEMS) -> Path:
    rows = [
        {
            "id": f"i{n}",
            "criterion": "result_groundedness",
            "group": f"g{n}",
            "payload": {"amount_cents": 5400},
            "answer": f"item-{n}- costs $54.00.",
            "labels": [{"annotator": "ana", "label": 1}],
        }
        for n in range(count)
    ]
    file = folder / "labels.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return file


@pytest.fixture
def silent() -> Iterator[Provider]:
    """A provider that answers so many requests and then none, until its latency is set back."""

    def now() -> float:
        if len(provider.requests) > ANSWERED and provider.seed:
            provider.latency = 3600.0
        return 0.0

    provider = Provider(now=now)
    with serving(provider):
        yield provider


@pytest.fixture
def environ(silent: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"HOME": str(tmp_path / "home"), "JUDGE_MODEL": "openai/good", "JUDGE_API_BASE": silent.base()}
    for name, value in settings.items():
        monkeypatch.setenv(f"CALLGRADE_{name}", value)


def asked(provider: Provider) -> Counter[str]:
    """How often each item was asked about."""
    return Counter(found[1] for one in provider.requests if (found := re.search(r"item-(\d+)-", json.dumps(one.body))))


def written(out: Path) -> tuple[Prediction, ...]:
    return read_predictions(out.read_text("utf-8").split("\n"))


def wait_until(holds: Callable[[], bool], process: Forked) -> None:
    """Until it holds; the test fails where the process ends first."""
    while not holds():
        assert process.poll() is None, "the command ended before it could be killed"
        time.sleep(0.02)


@pytest.mark.usefixtures("environ")
def test_killed_in_the_middle_it_goes_on_and_asks_nothing_twice(
    silent: Provider, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`fresh` reads no cache: only the file can tell what is there."""
    file, out = labels(tmp_path), tmp_path / "said.jsonl"
    words = ("calibrate", "judge", "--labels", str(file), "--out", str(out), "--judges", "fresh")
    process = Forked(Command("service.cli", (*words, "--repeats", str(REPEATS)), os.environ.copy(), tmp_path / "log"))
    wait_until(lambda: out.exists() and out.read_bytes().count(b"\n") == ANSWERED, process)
    process.kill()
    process.wait()
    before = written(out)
    assert len(before) == ANSWERED
    with out.open("ab") as cut:
        cut.write(b'{"id": "i39", "criterion": "gro')

    silent.seed, silent.latency = 0, 0.0
    silent.requests.clear()
    assert judge_labels(file, out, judges="fresh", repeats=REPEATS) == ExitCode.PASSED
    assert f"resuming: {ANSWERED} predictions" in capsys.readouterr().err
    found = written(out)
    assert found[:ANSWERED] == before
    assert sorted(one.answer_id for one in found) == sorted(
        (f"i{n}", "result_groundedness", k, "result_groundedness") for n in range(ITEMS) for k in range(2)
    )
    known = Counter(one.id[1:] for one in before)
    assert asked(silent) == Counter({str(n): REPEATS for n in range(ITEMS)}) - known

    silent.requests.clear()
    assert judge_labels(file, out, judges="fresh", repeats=REPEATS) == ExitCode.PASSED
    assert not silent.requests


BEGUN = PredictionBasis(labels="a", rubric="r", judges={"j": "1"}, model="m")
SAID = Prediction(id="i", criterion="c", raw=0.5)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"labels": "b"}, "the labelled set has changed"),
        ({"rubric": "s"}, "the rubric is a different one"),
        ({"judges": {"j": "2"}}, "a judge has changed"),
        ({"model": "n"}, "a different model is set"),
        ({"api_base": "http://x"}, "the model is at a different address"),
        ({"assembly": 9}, "asks questions differently"),
    ],
)
def test_each_thing_that_makes_another_file(tmp_path: Path, change: dict[str, object], why: str) -> None:
    out = tmp_path / "said.jsonl"
    with open_predictions(out, BEGUN) as file:
        file.add(SAID)
    with pytest.raises(InputError, match=why), open_predictions(out, BEGUN.model_copy(update=change)):
        pass
    with open_predictions(out, BEGUN) as file:
        assert file.known == (SAID,)


def test_files_that_are_not_ours_stay_as_they_are(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.jsonl"
    foreign.write_text("mine\n", "utf-8")
    with pytest.raises(InputError, match="not started by this command"), open_predictions(foreign, BEGUN):
        pass
    assert foreign.read_text("utf-8") == "mine\n"
    build_basis_path(foreign).write_text("{}", "utf-8")
    with pytest.raises(InputError, match="cannot be read"), open_predictions(foreign, BEGUN):
        pass
    build_basis_path(foreign).write_text(BEGUN.model_dump_json(), "utf-8")
    with pytest.raises(InputError, match=r"foreign\.jsonl:1: not valid JSON"), open_predictions(foreign, BEGUN):
        pass


def test_an_empty_file_begins_anew_and_two_do_not_write_one_file(tmp_path: Path) -> None:
    out = tmp_path / "said.jsonl"
    with open_predictions(out, BEGUN):
        pass
    other = BEGUN.model_copy(update={"labels": "b"})
    with open_predictions(out, other) as file:
        file.add(SAID)
        with pytest.raises(InputError, match="another process is writing it"), open_predictions(out, other):
            pass
    assert written(out) == (SAID,)


@pytest.mark.usefixtures("environ")
def test_a_key_that_is_refused_ends_it_at_once(
    silent: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", "openai/fault-401-x1")
    monkeypatch.setenv("CALLGRADE_JUDGE_IN_FLIGHT", "1")
    out = tmp_path / "predictions.jsonl"
    with pytest.raises(SettingsError, match="no key that its provider accepts"):
        judge_labels(labels(tmp_path, count=5), out)
    assert len(silent.requests) == 1
    assert judge_labels(labels(tmp_path, count=5), out) is ExitCode.PASSED
    assert len(written(out)) == 5
