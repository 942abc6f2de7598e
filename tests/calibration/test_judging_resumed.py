"""`callgrade calibrate judge` can be stopped at any time: the cache keeps what was answered, and nothing of it is asked again."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.calibration.predictions import Prediction, read_predictions
from service.cli.commands.calibrate.labels import judge_items
from service.cli.exits import ExitCode
from service.errors import SettingsError
from tests.cli.test_score_again import count_kept
from tests.faults.provider import Provider, serving
from tests.forked import Command, Forked
from tests.jobs.process import until
from tests.labelled import item

ITEMS, REPEATS = 40, 2
ANSWERED = 25
"""As many requests are answered before the provider falls silent."""


def labels(folder: Path, *, count: int = ITEMS) -> Path:
    file = folder / "labels.jsonl"
    file.write_text("".join(json.dumps(item(n)) + "\n" for n in range(count)), "utf-8")
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
    return Counter(
        found[1] for one in provider.requests if (found := re.search(r"Order (\d+) cost", json.dumps(one.body)))
    )


def written(out: Path) -> tuple[Prediction, ...]:
    return read_predictions(out.read_text("utf-8").split("\n"))


@pytest.mark.usefixtures("environ")
def test_stopped_in_the_middle_it_asks_only_for_what_is_missing(silent: Provider, tmp_path: Path) -> None:
    file, out = labels(tmp_path), tmp_path / "said.jsonl"
    words = ("calibrate", "judge", "--labels", str(file), "--out", str(out), "--repeats", str(REPEATS))
    process = Forked(Command("service.cli", words, os.environ.copy(), tmp_path / "log"))
    until(lambda: count_kept(tmp_path) == ANSWERED or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == ExitCode.INTERRUPTED
    assert "run the same command again" in (tmp_path / "log").read_text()
    assert not out.exists()
    before = asked(silent)

    silent.seed, silent.latency = 0, 0.0
    silent.requests.clear()
    assert judge_items(file, out, repeats=REPEATS) == ExitCode.PASSED
    assert len(silent.requests) == ITEMS * REPEATS - ANSWERED
    assert set(before | asked(silent)) == {str(n) for n in range(ITEMS)}
    assert [one.answer_id for one in written(out)] == sorted(
        (f"i{n:03}", "result_groundedness", k, "result_groundedness") for n in range(ITEMS) for k in range(2)
    )


@pytest.mark.usefixtures("environ")
def test_a_key_that_is_refused_ends_it_at_once(
    silent: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", "openai/fault-401-x1")
    monkeypatch.setenv("CALLGRADE_JUDGE_IN_FLIGHT", "1")
    out = tmp_path / "predictions.jsonl"
    with pytest.raises(SettingsError, match="the provider rejected the API key"):
        judge_items(labels(tmp_path, count=5), out)
    assert len(silent.requests) == 1
    assert judge_items(labels(tmp_path, count=5), out) is ExitCode.PASSED
    assert len(written(out)) == 5
