"""The command's functions: files in, files out, and which place of which file is wrong."""

from __future__ import annotations

import gzip
import json
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
import typer

from service.cli.commands.calibrate.fits import fit_judges
from service.errors import InputError
from tests.calibration.label_sets import drawn, write_lines


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    return write_files(tmp_path)


def write_files(folder: Path) -> tuple[Path, Path]:
    labels, predictions = drawn(200, judges=(0.85, 0.7))
    said = folder / "said.jsonl.gz"
    said.write_bytes(gzip.compress(write_lines(folder / "said.jsonl", predictions).read_bytes()))
    return write_lines(folder / "labels.jsonl", labels.items), said


def written(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder with labels, predictions and the run over them, in `out`; and what it said."""
    folder, told = tmp_path_factory.mktemp("made"), StringIO()
    with redirect_stdout(told):
        labels, said = write_files(folder)
        fit_judges(labels, folder / "out", draws=20, predictions=[said])
    return folder, told.getvalue()


def test_from_files_to_files(made: tuple[Path, str], files: tuple[Path, Path], tmp_path: Path) -> None:
    folder, out = made
    found = written(folder / "out")
    assert {name for name in found if "/" not in name} == {"report.json", "report.md", "report.html"}
    fits = [json.loads(data) for name, data in found.items() if name.startswith("fits/")]
    report = json.loads(found["report.json"])
    assert all(judge["fit"] in fits for judge in report["judges"])
    assert report["source"] == "labels.jsonl"
    assert "May I use it?" in out
    fit_judges(files[0], tmp_path / "again", draws=20, predictions=[files[1]])
    assert written(tmp_path / "again") == found


def test_files_that_cannot_be_used(files: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(typer.BadParameter, match=r"nowhere\.jsonl: No such file"):
        fit_judges(tmp_path / "nowhere.jsonl", tmp_path / "out")
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(b"\x1f\x8bnot gzip")
    with pytest.raises(typer.BadParameter, match="neither UTF-8 nor gzip"):
        fit_judges(broken, tmp_path / "out")
    with pytest.raises(InputError, match="no predictions"):
        fit_judges(files[0], tmp_path / "out")
    taken = tmp_path / "taken"
    taken.write_text("", "utf-8")
    with pytest.raises(typer.BadParameter, match="taken"):
        fit_judges(files[0], taken, draws=20, predictions=[files[1]])


def test_a_table_of_labels(tmp_path: Path) -> None:
    rows = ["id,criterion,group,annotator,label"]
    rows += [f"i{n},c,g{n},{who},{int(n % 3 > 0)}" for n in range(48) for who in ("a", "b")]
    (tmp_path / "labels.csv").write_text("\n".join(rows), "utf-8")
    said = [json.dumps({"id": f"i{n}", "criterion": "c", "raw": n % 3 / 2}) for n in range(48)]
    (tmp_path / "said.jsonl").write_text("\n".join(said), "utf-8")
    predictions = [tmp_path / "said.jsonl"]
    fit_judges(tmp_path / "labels.csv", tmp_path / "out", draws=20, predictions=predictions)
    report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    assert report["labels"][0]["humans"]["measures"]["kappa"]["value"] == pytest.approx(1.0)
    assert report["judges"][0]["why"]
