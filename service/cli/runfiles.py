"""The files of runs that can be taken up again: one store for each, below the home folder, held by one process at a time."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import typer
from pydantic_core import to_json

from service import __version__
from service.cli.inputs import EXPECTED, Inputs
from service.io.settings import Settings

DEPENDS = (
    "judge_model",
    "judge_models",
    "judge_fallback",
    "judge_api_base",
    "judge_reply",
    "judge_mask",
    "sandbox_hosts",
    "sandbox_allow_private",
)
"""The settings on which a report may depend. How fast judges are asked, and with which key, may change from start to start."""

DAY = 86_400.0


def fingerprint(inputs: Inputs) -> str:
    """What tells one run from another, 32 hex digits: the files byte for byte, and all that their reports depend on."""
    digest = hashlib.sha256(to_json(_depended(inputs)))
    for file in inputs.files:
        with file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()[:32]


def _depended(inputs: Inputs) -> dict[str, object]:
    shelf = inputs.engine.shelf
    return {
        "version": __version__,
        "files": [str(file) for file in inputs.files],  # reports of what cannot be scored name them
        "rubric": None if inputs.rubric is None else inputs.rubric.digest,
        "expected": None if inputs.expected is None else EXPECTED.dump_python(inputs.expected, mode="json"),
        "judges": inputs.judges,
        "format": inputs.format,
        "limits": asdict(inputs.limits),
        "settings": {name: getattr(inputs.settings, name) for name in DEPENDS},
        "rubrics": [rubric.digest for rubric in shelf],
        "own judges": [judge.model_dump(mode="json") for judge in shelf.judges.values()],
        "fits": [fit.model_dump(mode="json", exclude={"stale"}) for fit in inputs.engine.fits],
    }


def runs_folder(settings: Settings) -> Path:
    """The folder of all runs, made where it is missing. OSError where that cannot be."""
    folder = settings.home / "runs"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


@contextmanager
def held(folder: Path, name: str) -> Generator[Path]:
    """The store of a run, for this process alone. A usage error where another one has it."""
    with _locked(folder / f"{name}.lock"):
        store = folder / f"{name}.db"
        if not store.exists():
            store.touch(mode=0o600)
        yield store


def forget(store: Path) -> None:
    """Removes the files of a run. To be called by who holds it."""
    for suffix in (".db", ".db-wal", ".db-shm", ".db.worker", ".lock"):  # the last, for it keeps others away
        store.with_suffix(suffix).unlink(missing_ok=True)


def forget_old(folder: Path, *, days: float) -> None:
    """Removes what nobody has gone on with for so many days."""
    for store in folder.glob("*.db"):
        with suppress(OSError, typer.BadParameter):
            if time.time() - store.stat().st_mtime > days * DAY:
                with held(folder, store.stem):
                    forget(store)


@contextmanager
def _locked(path: Path) -> Generator[None]:
    while True:
        with path.open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                message = "another callgrade is scoring these files with these options already; --no-resumable scores beside it"
                raise typer.BadParameter(message) from None
            if not _is(file.fileno(), path):  # it was removed in the moment between
                continue
            yield
            return


def _is(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
