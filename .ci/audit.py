"""The gate of known vulnerabilities: what OSV knows of the packages in uv.lock, but for the exceptions beside this file.

Arguments go to `uv audit`. The exit code is 0 only where nothing is known and no exception is overdue.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TypedDict, cast

EXCEPTIONS = Path(__file__).with_name("exceptions.toml")
UV = Path(sys.executable).with_name("uv")


class Known(TypedDict):
    """A vulnerability that does not reach us."""

    id: str
    package: str
    version: str
    why: str
    look_again: date


def read(text: str) -> list[Known]:
    """The exceptions of a file."""
    return cast("list[Known]", tomllib.loads(text).get("exception", []))


def overdue(exceptions: list[Known], today: date) -> list[str]:
    """A line for each exception whose day has passed."""
    return [
        f"{one['id']} of {one['package']}: somebody was to look again on {one['look_again']}; see {EXCEPTIONS.name}"
        for one in exceptions
        if one["look_again"] < today
    ]


def main(arguments: list[str]) -> int:
    """Asks, and says what is overdue."""
    exceptions = read(EXCEPTIONS.read_text("utf-8"))
    late = overdue(exceptions, datetime.now(UTC).date())
    print(*late, sep="\n", end="\n" if late else "", file=sys.stderr)  # noqa: T201 (it is what a program says)
    ignored = [word for one in exceptions for word in ("--ignore", one["id"])]
    command = [str(UV), "audit", "--frozen", "--preview-features", "audit-command", *ignored, *arguments]
    return subprocess.run(command, check=False).returncode or bool(late)  # noqa: S603 (its own words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
