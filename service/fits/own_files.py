"""Record the user's own rubrics and fits in the audit log: the files change behind our back, so each start looks."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from service.settings import Settings
from service.store.access.audit import SERVICE, Actor, Audit
from service.store.database import Database
from service.wiring import list_rubric_folders

LOG = logging.getLogger("callgrade.audit")

MAX_FILES_NAMED = 500
"""Most files that one entry names; it only counts the others."""

DIGEST_CHARS = 16


def note_own_files(settings: Settings, database: Database, *, by: Actor = SERVICE) -> None:
    """Record in the audit log the user's rubrics, judges and fits, if they changed.

    A database that takes no entry, say because its disk is full, does not stop the service from starting.
    """
    audit = Audit(database)
    rubrics = [
        file for place in list_rubric_folders(settings) for file in _find_files(place, "*.y*ml", "judges/*.y*ml")
    ]
    try:
        audit.note_files(by, "rubrics.change", _hash_files(rubrics))
        audit.note_files(by, "fits.change", _hash_files(_find_files(settings.home / "fits", "*.json")))
    except DBAPIError as error:
        LOG.warning("the files could not be recorded", extra={"fields": {"why": type(error).__name__}})


def _find_files(folder: Path, *patterns: str) -> list[Path]:
    return [file for pattern in patterns for file in sorted(folder.glob(pattern))]


def _hash_files(files: Iterable[Path]) -> dict[str, str]:
    digests = {str(file): sha256(file.read_bytes()).hexdigest()[:DIGEST_CHARS] for file in files}
    more = {name: digests[name] for name in list(digests)[MAX_FILES_NAMED:]}
    listed = {name: digest for name, digest in digests.items() if name not in more}
    if more:
        rest = sha256("".join(more.values()).encode()).hexdigest()[:DIGEST_CHARS]
        listed[f"{len(more)} more"] = rest
    return listed
