"""`callgrade calibrate install`: fits are put in place, and what they leave open is said, then and at each start."""

from __future__ import annotations

import json
import os
from datetime import date
from pathlib import Path
from shutil import copytree

import pytest

from service.cli.commands.calibrate.fits import fit_judges
from service.core.judging.fit_warnings import IN_USE
from service.core.judging.questions import ASSEMBLY
from service.fits.files import describe_state, read_fits
from service.fits.manager import FitCheck, append_checks
from service.registry import Registry
from tests.calibration.label_sets import drawn, write_lines
from tests.calibration.test_discrimination import JUDGES, run_judge
from tests.cli.cli_run import Run
from tests.cli.served import served
from tests.faults.provider import Provider
from tests.fits import make_fit

JUDGE = Registry().judges["result_groundedness"]
OPEN = "result_groundedness on c: what openai/gpt-fine says stays open, for its fits (m0, m1) are of another model"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels, what two judges said, and the run of them: the judges are models by the packaged judge file."""
    folder = tmp_path_factory.mktemp("made")
    labels, predictions = drawn(200, judges=(0.9, 0.85))
    said = [one.model_copy(update={"judge": JUDGE.id, "judge_digest": JUDGE.digest}) for one in predictions]
    labels_file = write_lines(folder / "labels.jsonl", labels.items)
    said_file = write_lines(folder / "said.jsonl", said)
    fit_judges(labels_file, folder / "out", predictions=[said_file], draws=40)
    return folder


@pytest.fixture
def out(made: Path, tmp_path: Path) -> Path:
    """The folder of a run, beside its labels and predictions."""
    copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "out"


def test_a_run_is_installed_and_what_stays_open_is_said(
    run: Run, out: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran = run("calibrate", "install", out)
    assert (ran.code, "warning" in ran.err) == (0, False)  # no judge is set up: nobody's verdict can stay open
    folder = Path(os.environ["CALLGRADE_HOME"]) / "fits"
    assert read_fits([folder]) == read_fits([out / "fits"])
    assert not list(folder.glob("*.new"))
    monkeypatch.setenv("CALLGRADE_JUDGE_MODEL", "openai/gpt-fine")
    assert OPEN in " ".join(run("calibrate", "install", out / "report.json").err.split())
    with served(folder.parent, Provider()):
        logs = [(folder.parent / f"{name}.log").read_text() for name in ("serve", "worker")]
    assert [OPEN in log for log in logs] == [True, True]


def test_who_installed_it_stands_in_the_audit_log_of_a_store_that_is_there(run: Run, out: Path) -> None:
    store = Path(os.environ["CALLGRADE_HOME"]) / "store.db"
    assert run("calibrate", "install", out).code == 0
    assert not store.exists()
    assert json.loads(run("audit", "--format", "json").out)["data"] == []
    assert store.exists()
    for _ in range(2):  # the second time it changes nothing
        assert run("calibrate", "install", out).code == 0
    (entry,) = json.loads(run("audit", "--format", "json").out)["data"]
    assert (entry["act"], entry["who"].startswith("user ")) == ("fits.change", True)
    assert len(entry["detail"]["files"]) == len(list((out / "fits").iterdir()))


def test_what_is_in_place_is_listed_with_how_it_has_held(run: Run, out: Path) -> None:
    assert "no fit in" in run("calibrate", "fits").err
    assert run("calibrate", "install", out).code == 0
    folder = Path(os.environ["CALLGRADE_HOME"]) / "fits"
    first, _ = read_fits([folder])
    append_checks(
        folder, [FitCheck(fit=first.id, day=date(2026, 5, 2), items=50, kappa=0.4, then=0.6, drifted=("kappa below",))]
    )
    with (folder / "checks.jsonl").open("a") as file:
        file.write("broken\n")
    rows = json.loads(run("calibrate", "fits", "--format", "json").out)
    assert [(row["model"], row["labels"], row["promise"]) for row in rows] == [
        ("m0", "200", "none"),
        ("m1", "200", "none"),
    ]
    assert {row["state"] for row in rows} == {
        "of another version of the judge"
    }  # the predictions name another way to ask
    told = {row["since then"] for row in rows}
    assert told == {"2026-05-02: kappa 0.400 on 50 items, drifted: kappa below (1 check)", "not checked"}
    assert "Installed: result_groundedness" in run("calibrate", "fits").out


def test_a_second_run_into_a_folder_leaves_no_fit_of_the_first(run: Run, out: Path) -> None:
    (out / "fits" / "mine.json").write_bytes(
        next((out / "fits").glob("*.json")).read_bytes().replace(b'"c"', b'"mine"')
    )
    said = (out.parent / "said.jsonl").read_text("utf-8").splitlines(keepends=True)
    (out.parent / "said.jsonl").write_text("".join(line for line in said if '"m0"' in line), "utf-8")
    again = ("--labels", "labels.jsonl", "--predictions", "said.jsonl", "--out", "out", "--draws", "0")
    assert run("calibrate", "run", *again).code == 0
    left = read_fits([out / "fits"])
    assert sorted(fit.criterion for fit in left) == ["c", "mine"]  # what no run of this folder made is kept
    assert [fit.model for fit in left if fit.criterion == "c"] == ["m0"]


@pytest.mark.parametrize("name", ["as it is", "inverted"])
def test_no_fit_is_installed_but_of_a_useful_judge(run: Run, tmp_path: Path, name: str) -> None:
    (use, _), (_, labels, said) = JUDGES[name], run_judge(name)
    judged = write_lines(tmp_path / "judged.jsonl", (*labels.items, *said))
    ran = run("calibrate", "run", "--labels", judged, "--out", tmp_path / "out", "--draws", "0")
    assert ran.code == 0
    assert f" {use}: " in ran.out
    ran = run("calibrate", "install", tmp_path / "out")
    assert ran.code == (0 if use == "useful" else 5)
    installed = Path(os.environ["CALLGRADE_HOME"]) / "fits"
    assert len(list(installed.glob("*.json"))) == (use == "useful")
    assert (f"its judge is {use}: " in " ".join(ran.err.split())) is (use != "useful")


def test_a_run_is_certified_and_each_look_at_its_labels_is_counted(run: Run, out: Path) -> None:
    ran = run("calibrate", "certify", out, "--tpr", "0.6", "--tnr", "0.5")
    assert ran.code == 0, ran.out
    assert "in all: certified, 2 of 2 judges" in ran.out
    assert " certified: " in (out / "report.md").read_text("utf-8")
    assert all(fit.certified for fit in read_fits([out / "fits"]))
    assert run("calibrate", "install", out).code == 0
    rows = json.loads(run("calibrate", "fits", "--format", "json").out)
    assert [row["promise"] for row in rows] == ["none; certified: 60% of passes, 50% of failures"] * 2
    ran = run("calibrate", "certify", out, "--judge", f"{JUDGE.id} (m0)", "--tpr", "0.99")
    assert ran.code == 2
    assert "look 2 at these labels" in " ".join(ran.out.split())
    assert "0 of 1 judge" in ran.out
    by_model = {fit.model: fit for fit in read_fits([out / "fits"])}
    assert [(one.look, one.error) for one in by_model["m0"].certificates] == [(1, 0.05), (2, 0.025)]
    assert (by_model["m0"].certified, by_model["m1"].certified) == (False, True)
    looks = Path(os.environ["CALLGRADE_HOME"]) / "fits" / "looks.jsonl"
    assert len(looks.read_text("utf-8").splitlines()) == 2
    looks.unlink()  # what the fits record counts too
    assert "look 3 at" in " ".join(run("calibrate", "certify", out, "--judge", f"{JUDGE.id} (m0)").out.split())
    assert run("calibrate", "certify", out, "--judge", "nobody").code == 5


def test_fresh_labels_certify_alone(run: Run, out: Path, tmp_path: Path) -> None:
    """Their looks are their own, and none that the run has seen counts."""
    _, labels, said = run_judge("as it is")
    run_dir, judged = tmp_path / "run", write_lines(tmp_path / "judged.jsonl", (*labels.items, *said))
    assert run("calibrate", "run", "--labels", judged, "--out", run_dir, "--draws", "0").code == 0
    asked = ("calibrate", "certify", run_dir, "--tpr", "0.5", "--tnr", "0.5")
    assert "no label that the run has not seen" in run(*asked, "--labels", judged).err
    halves = [one.model_copy(update={"split": "fit" if int(one.group[-1], 36) % 2 else "test"}) for one in labels.items]
    judged, half = write_lines(tmp_path / "halves.jsonl", (*halves, *said)), tmp_path / "half"
    assert run("calibrate", "run", "--labels", judged, "--out", half, "--draws", "0").code == 0
    assert "no label that the run has not seen" in run("calibrate", "certify", half, "--labels", judged).err
    renamed = [one.model_copy(update={"id": f"new-{one.id}"}) for one in (*labels.items, *said)]
    fresh = write_lines(tmp_path / "fresh.jsonl", renamed)
    assert run(*asked).code == 0
    ran = run(*asked, "--labels", fresh)
    assert ran.code == 0, ran.out
    assert "look 2" not in ran.out
    assert "look 2 at these labels" in " ".join(run(*asked, "--labels", fresh).out.split())


def test_a_fit_made_with_other_evidence_is_not_in_use() -> None:
    registry = Registry()
    judge = registry.judges["result_groundedness"]
    known = registry.judges, registry.list_evidence()
    bound = {"judge": judge.id, "criterion": judge.id, "judge_digest": judge.digest, "assembly": ASSEMBLY}
    assert describe_state(make_fit(**bound, evidence=min(known[1][judge.id, judge.id])), *known) == IN_USE
    assert describe_state(make_fit(**bound), *known) == "made with other evidence than is shown"
