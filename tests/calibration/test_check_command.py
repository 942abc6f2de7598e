"""`callgrade calibrate check` and `compare`: from files, against a provider of our own, to the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

from service.cli.commands.calibrate.fits import fit_judges
from service.cli.commands.calibrate.judges import check_judges, compare_judges
from service.cli.commands.calibrate.labels import judge_items
from service.cli.exits import ExitCode
from service.cli.options import read_settings
from service.errors import InputError
from tests.faults.provider import Json, Provider, Reply, serving
from tests.labelled import item

COUNT = 120
NAMES = "abcdefghijk"


class Harsh(Provider):
    """A model of the same name that changed overnight: to it, everything is contradicted."""

    def reply(self, script: str | None, headers: Mapping[str, str], body: Json) -> Reply:
        found = super().reply(script, headers, body)
        return replace(found, body=found.body.replace(rb"\"grounded\"", rb"\"contradicted\""))


@pytest.fixture(scope="module")
def judged() -> Iterator[Provider]:
    """The provider that was asked for the run, which its predictions name."""
    with serving(Provider()) as server:
        yield server


def use(monkeypatch: pytest.MonkeyPatch, provider: Provider, home: Path) -> None:
    for name, value in {"HOME": str(home), "JUDGE_MODEL": "openai/good", "JUDGE_API_BASE": provider.base()}.items():
        monkeypatch.setenv(f"CALLGRADE_{name}", value)


@pytest.fixture(scope="module")
def made(judged: Provider, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with labels, what the judge said of them, and the run."""
    folder = tmp_path_factory.mktemp("made")
    labels, said = folder / "labels.jsonl", folder / "said.jsonl"
    rows = [
        item(n, answer=f"Dear {NAMES[n // 11]}{NAMES[n % 11]}, it is ${54 if n % 3 else 77}.00.") for n in range(COUNT)
    ]
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        use(patch, judged, folder)
        assert judge_items(labels, said) == ExitCode.PASSED
        fit_judges(labels, folder / "run", predictions=[said], draws=40)
    return folder


@pytest.fixture
def run(made: Path, judged: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copytree(made, tmp_path, dirs_exist_ok=True)
    use(monkeypatch, judged, tmp_path)
    judged.requests.clear()
    return tmp_path / "run"


@pytest.fixture
def labels(run: Path) -> Path:
    return run.with_name("labels.jsonl")


def test_a_check_that_holds_and_nights_that_do_not(
    run: Path, labels: Path, judged: Provider, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert check_judges(run, labels, size=40, output_format="json") == ExitCode.PASSED
    told = capsys.readouterr()
    (found,) = json.loads(told.out)["judges"]
    assert (len(judged.requests), found["n"], found["fall"]["nights"]) == (40, 40, 1)
    assert (found["drifted"], told.err) == (False, "")
    assert found["then"] == found["now"]

    with serving(Harsh()) as harsh:
        monkeypatch.setenv("CALLGRADE_JUDGE_API_BASE", harsh.base())
        report = run / "report.json"
        assert check_judges(report, labels, size=40, output_format="json") == ExitCode.FAILED
        told = capsys.readouterr()
        assert check_judges(run, labels, size=40) == ExitCode.FAILED
    assert "drifted: agreement tonight is lower by" in " ".join(capsys.readouterr().out.split())
    (drifted,) = json.loads(told.out)["judges"]
    assert drifted["agreed"].keys() == found["agreed"].keys()
    assert "drift: result_groundedness (good) on result_groundedness: agreement tonight is lower" in told.err


def test_what_nobody_answers_is_no_drift(
    run: Path, labels: Path, judged: Provider, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CALLGRADE_JUDGE_API_BASE", judged.base("fault-refusal"))
    with pytest.raises(InputError, match="none of 5 items was answered"):
        check_judges(run, labels, size=5)
    installed = read_settings().home / "fits"
    copytree(run / "fits", installed)
    monkeypatch.setenv("CALLGRADE_JUDGE_API_BASE", judged.base("fault-refusal-x8"))
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", "openai/fault-refusal-x8")
    assert check_judges(run, labels, size=40) == ExitCode.DATA
    told = capsys.readouterr().err
    assert "8 items without an answer, left out on both sides" in told
    assert "fault-refusal-x8 answered; no fit for good applies" in told
    assert check_judges(run, labels, size=40) == ExitCode.UNDECIDED  # all answered, by a model that has no fit
    assert not (installed / "checks.jsonl").exists()


def test_what_cannot_be_checked(run: Path, labels: Path, tmp_path: Path) -> None:
    text = labels.read_text("utf-8")
    labels.write_text(text.replace('"label": true', '"label": false'), "utf-8")
    with pytest.raises(InputError, match=r"the label of 'i\d+' has changed since the run"):
        check_judges(run, labels, size=COUNT)
    labels.write_text("".join(text.splitlines(keepends=True)[:2]), "utf-8")
    with pytest.raises(InputError, match=r"no item 'i\d+' of 'result_groundedness', which the run held out"):
        check_judges(run, labels, size=COUNT)
    labels.write_text(text, "utf-8")
    with pytest.raises(InputError, match="no judge in it is one of four_step as it is now and 'other'"):
        check_judges(run, labels, judge="other")


def test_two_judges_are_compared(run: Path, labels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The second says of thirty items the opposite."""
    said, other = tmp_path / "said.jsonl", tmp_path / "other.jsonl"
    rows = [json.loads(line) for line in said.read_text("utf-8").splitlines()]
    turned = [
        {**one, "model": "turned", "raw": float(one["raw"] < 1.0) if one["id"] < "i030" else one["raw"]} for one in rows
    ]
    other.write_text("".join(json.dumps(row) + "\n" for row in turned), "utf-8")
    capsys.readouterr()
    for output_format in ("table", "markdown"):
        compare_judges(said, other, labels=labels, draws=50, output_format=output_format)
        out = capsys.readouterr().out
        assert "McNemar" in out
        assert "Where they differ: 30 items" in out
    compare_judges(said, other, labels=labels, draws=50, output_format="json")
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["items"], found["a_right"] + found["b_right"], len(found["differing"])) == (COUNT, 30, 30)
    compare_judges(run, run / "report.json")
    assert "Where they differ" not in capsys.readouterr().out
    with pytest.raises(InputError, match="name them with --labels"):
        compare_judges(said, run)
