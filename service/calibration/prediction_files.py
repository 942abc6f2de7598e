"""The file that predictions are written to as they come, and that a later start goes on with.

Beside it stands a small file that says what they were made from. What differs from it begins a file of its own: one file
holds the answers to one set of questions.
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
    """Its id, and sha256 of all in it that scores."""
    judges: dict[str, str]
    """sha256 of the file of each judge."""
    model: str
    """As it is set, or as the judges name it."""
    api_base: str | None = None
    assembly: int = ASSEMBLY


_WORDS = {
    "labels": "the labelled set has changed",
    "rubric": "the rubric is another",
    "judges": "a judge has changed",
    "model": "another model is set",
    "api_base": "the model is at another address",
    "assembly": "this version of callgrade puts questions otherwise",
}


def build_basis(
    items: Iterable[LabelledItem], rubric: Rubric, *, model: str, api_base: str | None = None
) -> PredictionBasis:
    """What the predictions of these items by this rubric are made from."""
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
    """A file of predictions that is open: those that were there, and a way to add to them."""

    known: tuple[Prediction, ...]
    _file: IO[bytes]

    def add(self, one: Prediction) -> None:
        """Writes one prediction; it is there even if this process is killed right after."""
        self._file.write(one.model_dump_json().encode() + b"\n")
        self._file.flush()


@contextmanager
def open_predictions(out: Path, begun: PredictionBasis) -> Generator[PredictionFile]:
    """The file at `out`, begun or gone on with. A last line that was cut off is taken away: it is asked for again.

    InputError where it holds what was made from something else, where no such file stands beside it, where another process
    writes it, and with the line of what cannot be read. OSError where it cannot be written.
    """
    with out.open("a+b") as file:
        _lock_file(out, file)
        _admit(out, begun, empty=not file.tell())
        yield PredictionFile(_read_whole_lines(out, file), file)
        os.fsync(file.fileno())


def build_note_path(out: Path) -> Path:
    """The file that says what the predictions at `out` were made from."""
    return out.with_name(f"{out.name}.begun")


def _admit(out: Path, begun: PredictionBasis, *, empty: bool) -> None:
    note = build_note_path(out)
    if empty:
        _write_note(note, begun)
        return
    if not note.exists():
        raise InputError.at(str(out), "stands there already and was not begun by this command; name another file")
    try:
        before = PredictionBasis.model_validate_json(note.read_bytes())
    except ValidationError:
        raise InputError.at(str(note), f"cannot be read; name another file than {out}, or remove both") from None
    changed = [words for name, words in _WORDS.items() if getattr(before, name) != getattr(begun, name)]
    if changed:
        raise InputError.at(
            str(out),
            f"was begun otherwise, and cannot go on: {', '.join(changed)}. Name another file, or remove it and {note.name}",
        )


def _write_note(note: Path, begun: PredictionBasis) -> None:
    """All of it or nothing."""
    draft = note.with_name(f"{note.name}.{os.getpid()}")
    draft.write_text(begun.model_dump_json(indent=1) + "\n", "utf-8")
    draft.replace(note)


def _lock_file(out: Path, file: IO[bytes]) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError.at(str(out), "another process is writing it") from None


def _read_whole_lines(out: Path, file: IO[bytes]) -> tuple[Prediction, ...]:
    file.seek(0)
    data = file.read()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        file.truncate(len(whole))
    try:
        return read_predictions(whole.decode("utf-8").split("\n"))
    except UnicodeDecodeError:
        raise InputError.at(str(out), "not UTF-8") from None
    except InputError as error:
        raise error.in_file(str(out)) from None
