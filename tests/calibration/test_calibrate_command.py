"""The command's functions: files in, files out, and which place of which file is wrong."""

from __future__ import annotations

import gzip
import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import typer

from service.calibration.figures import Resampling
from service.calibration.options import ReportOptions
from service.cli.commands.calibrate.run import run_calibration
from service.cli.commands.calibrate.show import show_calibration
from service.cli.exits import ExitCode
from service.cli.labelled import Sources
from service.core.judging.fits import Fit
from service.errors import InputError
from tests.calibration.label_sets import drawn

QUICK = ReportOptions(resampling=Resampling(draws=20), extra_splits=3)


@pytest.fixture
def files(tmp_path: Path) -> Sources:
    return write_files(tmp_path)


def write_files(folder: Path) -> Sources:
    labels, predictions = drawn(200, judges=(0.85, 0.7))
    one, other = folder / "labels.jsonl", folder / "said.jsonl.gz"
    one.write_text("".join(f"{item.model_dump_json()}\n" for item in labels.items), "utf-8")
    other.write_bytes(gzip.compress("".join(f"{said.model_dump_json()}\n" for said in predictions).encode()))
    return Sources(one, [other])


def written(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with labels, predictions and the run over them, in `out`; and what it said."""
    folder, told = tmp_path_factory.mktemp("made"), StringIO()
    with redirect_stdout(told):
        assert run_calibration(write_files(folder), folder / "out", QUICK) == ExitCode.PASSED
    return folder, told.getvalue()


def test_from_files_to_files(made: tuple[Path, str], files: Sources, tmp_path: Path) -> None:
    folder, out = made
    found = written(folder / "out")
    assert {name for name in found if "/" not in name} == {"report.json", "report.md", "report.html"}
    fits = [Fit.model_validate_json(data) for name, data in found.items() if name.startswith("fits/")]
    report = json.loads(found["report.json"])
    assert {fit.id for fit in fits} >= {judge["fit_id"] for judge in report["judges"]}
    assert report["source"] == "labels.jsonl"
    assert "human beside human" in out
    assert "m0: ECE over 3 other splits of the groups: median" in out
    run_calibration(files, tmp_path / "again", QUICK)
    assert written(tmp_path / "again") == found


def test_files_that_cannot_be_used(files: Sources, tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match=r"nowhere\.jsonl: No such file"):
        run_calibration(Sources(tmp_path / "nowhere.jsonl"), tmp_path / "out")
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(b"\x1f\x8bnot gzip")
    with pytest.raises(typer.BadParameter, match="neither UTF-8 nor gzip"):
        run_calibration(Sources(broken), tmp_path / "out")
    with pytest.raises(InputError, match="no predictions"):
        run_calibration(Sources(files.labels), tmp_path / "out")
    taken = tmp_path / "taken"
    taken.write_text("", "utf-8")
    with pytest.raises(typer.BadParameter, match="taken"):
        run_calibration(files, taken, QUICK)
    with pytest.raises(InputError, match=r"taken: |broken"):
        show_calibration(taken)


def test_a_table_of_labels(tmp_path: Path) -> None:
    rows = ["id,criterion,group,annotator,label"]
    rows += [f"i{n},c,g{n},{who},{int(n % 3 > 0)}" for n in range(48) for who in ("a", "b")]
    (tmp_path / "labels.csv").write_text("\n".join(rows), "utf-8")
    said = [json.dumps({"id": f"i{n}", "criterion": "c", "raw": n % 3 / 2}) for n in range(48)]
    (tmp_path / "said.jsonl").write_text("\n".join(said), "utf-8")
    sources = Sources(tmp_path / "labels.csv", [tmp_path / "said.jsonl"])
    assert run_calibration(sources, tmp_path / "out", QUICK) == ExitCode.PASSED
    report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert report["labels"][0]["humans"]["measures"]["kappa"]["value"] == pytest.approx(1.0)
    assert report["judges"][0]["calibrated"] is False


def test_one_file_is_fitted_and_another_is_scored(tmp_path: Path) -> None:
    labels, predictions = drawn(400)
    fitted, held = labels.items[:200], labels.items[200:]
    for name, items in (("fit", fitted), ("held", held), ("same", fitted[:4])):
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in items), "utf-8")
    (tmp_path / "said.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in predictions), "utf-8")
    sources = Sources(tmp_path / "fit.jsonl", [tmp_path / "said.jsonl"])
    assert run_calibration(sources, tmp_path / "out", QUICK, hold_out=tmp_path / "held.jsonl") == ExitCode.PASSED
    report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert (report["judges"][0]["fitted"], report["judges"][0]["held_out"], report["given"]) == (200, 200, ["c"])
    assert {one["id"] for one in report["judges"][0]["items"]} == {one.id for one in held}
    with pytest.raises(InputError, match="cannot be held out from itself"):
        run_calibration(sources, tmp_path / "out", QUICK, hold_out=tmp_path / "same.jsonl")
