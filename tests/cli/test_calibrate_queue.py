"""`callgrade calibrate queue`: what waits, and some of it for a human to label."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_run import Run

LABEL = [{"annotator": "ana", "label": "pass"}]


def line(name: str, value: float, **more: Any) -> str:
    said = {"id": name, "criterion": "grounded", "raw": value, "judge": "result_groundedness", "model": "m"}
    made = {"id": name, "criterion": "grounded", "group": name, "trace": {"format": "callgrade"}, "labels": []}
    return json.dumps({**made, "prediction": said, "value": value, "threshold": 0.5, **more}) + "\n"


def queue(folder: Path) -> Path:
    file = folder / "queue.jsonl"
    file.write_text(line("far", 0.7) + line("near", 0.52) + line("done", 0.5, labels=LABEL) + line("other", 0.6))
    return file


def test_how_many_wait(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = run("calibrate", "queue", "--file", str(queue(tmp_path)))
    assert ran.code == 0
    assert ran.lines[-1].split() == ["grounded", "result_groundedness", "m", "3"]
    monkeypatch.setenv("CALLGRADE_LABEL_QUEUE", str(tmp_path / "queue.jsonl"))
    assert run("calibrate", "queue").out == ran.out


def test_the_most_doubtful_are_exported_and_fitted_once_they_are_labelled(run: Run, tmp_path: Path) -> None:
    file, out = queue(tmp_path), tmp_path / "some.jsonl"
    before = file.read_bytes()
    assert run("calibrate", "queue", "--file", str(file), "--export", "2", "--out", str(out)).code == 0
    assert [json.loads(one)["id"] for one in out.read_text().splitlines()] == ["near", "other"]
    assert file.read_bytes() == before
    labelled = [{**json.loads(one), "labels": LABEL} for one in out.read_text().splitlines()]
    out.write_text("".join(json.dumps(one) + "\n" for one in labelled))
    ran = run("calibrate", "run", "--labels", str(out), "--out", str(tmp_path / "run"), "--draws", "0")
    assert ran.code == 0, ran.err
    left = run("calibrate", "queue", "--file", str(file), "--done", str(out), "--export", "9")
    assert [json.loads(one)["id"] for one in left.lines] == ["far"]


def test_nothing_waits(run: Run, tmp_path: Path) -> None:
    assert "nothing waits" in run("calibrate", "queue", "--file", str(tmp_path / "none.jsonl")).err
    assert run("calibrate", "queue", "--file", str(queue(tmp_path)), "--criterion", "x", "--export", "1").out == ""


def test_what_cannot_be_read_is_named(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "q"
    file.write_text(line("a", 0.5) + line("b", 2))
    ran = run("calibrate", "queue", "--file", str(file))
    assert ran.code == 5
    assert f"{file}: line 2: /prediction/raw" in ran.err


def test_without_a_file_it_says_so(run: Run) -> None:
    ran = run("calibrate", "queue")
    assert (ran.code, "CALLGRADE_LABEL_QUEUE" in ran.err) == (4, True)
