"""A disk that is soon full."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import pytest


@contextmanager
def small(folder: Path) -> Generator[None]:
    """In the folder a file system of 32 MB: as much again as the log of SQLite may take. Skips where none can be made."""
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=32m", "none", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(file: BinaryIO) -> None:
    with suppress(OSError):
        while True:
            file.write(bytes(4_096))
