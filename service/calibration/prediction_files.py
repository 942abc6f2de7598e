"""The file that predictions are written to as they arrive, and that a later start resumes.

A small file beside it records what the predictions are made from. Anything made from something else needs a file of its own:
one file holds the answers to one set of questions.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from service.calibration.labels import LabelledItem
from service.calibration.predictions import Prediction, read_predictions
from service.core.judging.questions import ASSEMBLY
from service.core.models.kinds import FrozenModel
from service.core.rubric import Rubric
from service.errors import InputError


class PredictionBasis(FrozenModel):
    """What predictions are made from."""

    labels: str
    """sha256 of the labelled items, in the order of their keys."""
    rubric: str
    """The rubric's id, and sha256 of everything in it that affects scores."""
    judges: dict[str, str]
    """sha256 of each judge's file, by judge id."""
    model: str
    """The model as configured, or as the judges name it."""
    api_base: str | None = None
    assembly: int = ASSEMBLY


_CHANGES = {
    "labels": "the labelled set has changed",
    "rubric": "the rubric is a different one",
    "judges": "a judge has changed",
    "model": "a different model is set",
    "api_base": "the model is at a different address",
    "assembly": "this version of callgrade asks questions differently",
}


def build_basis(
    items: Iterable[LabelledItem], rubric: Rubric, *, model: str, api_base: str | None = None
) -> PredictionBasis:
    """Describe what the predictions of these items by this rubric are made from."""
    text = json.dumps([item.model_dump(mode="json") for item in items], sort_keys=True, separators=(",", ":"))
    return PredictionBasis(
        labels=sha256(text.encode()).hexdigest(),
        rubric=f"{rubric.id} {rubric.digest}",
        judges={judge.id: judge.digest for judge in rubric.judges},
        model=model,
        api_base=api_base,
    )


@dataclass(frozen=True, slots=True)
class PredictionFile:
    """An open file of predictions: those it already holds, and a way to add more."""

    known: tuple[Prediction, ...]
    _file: IO[bytes]

    def add(self, one: Prediction) -> None:
        """Write one prediction; it survives even if this process is killed right after."""
        self._file.write(one.model_dump_json().encode() + b"\n")
        self._file.flush()


@contextmanager
def open_predictions(out: Path, basis: PredictionBasis) -> Generator[PredictionFile]:
    """Open the file at `out`, new or to resume. A truncated last line is removed, and its question asked again.

    InputError where the file was made from something else, where its basis file is missing, where another process is writing
    to it, and for a line that cannot be read. OSError where it cannot be written.
    """
    with out.open("a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError.at(str(out), "another process is writing it") from None
        if file.tell():
            _check_basis(out, basis)
        else:  # all of the basis is written, or nothing
            draft = out.with_name(f"{out.name}.{os.getpid()}")
            draft.write_text(basis.model_dump_json(indent=1) + "\n", "utf-8")
            draft.replace(build_basis_path(out))
        file.seek(0)
        data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        if len(whole) < len(data):
            file.truncate(len(whole))
        try:
            known = read_predictions(whole.decode("utf-8").split("\n"))
        except UnicodeDecodeError:
            raise InputError.at(str(out), "not UTF-8") from None
        except InputError as error:
            raise error.in_file(str(out)) from None
        yield PredictionFile(known, file)
        os.fsync(file.fileno())


def build_basis_path(out: Path) -> Path:
    """Return the path of the file that records what the predictions at `out` are made from."""
    return out.with_name(f"{out.name}.begun")


def _check_basis(out: Path, basis: PredictionBasis) -> None:
    basis_path = build_basis_path(out)
    if not basis_path.exists():
        raise InputError.at(str(out), "already exists and was not started by this command; name another file")
    try:
        before = PredictionBasis.model_validate_json(basis_path.read_bytes())
    except ValidationError:
        raise InputError.at(str(basis_path), f"cannot be read; name another file than {out}, or remove both") from None
    changed = [words for name, words in _CHANGES.items() if getattr(before, name) != getattr(basis, name)]
    if changed:
        why = f"was started differently and cannot be resumed: {', '.join(changed)}"
        raise InputError.at(str(out), f"{why}. Name another file, or remove it and {basis_path.name}")
