"""Writes anew what is frozen: `python -m tests.frozen`; `check` compares all reports, `database` makes another database."""

from __future__ import annotations

import sys

from tests.frozen import corpus, reports, stored, surface


def write() -> None:
    """The golden files, as the code is now."""
    reports.write_reports()
    surface.write_surface()
    corpus.write_corpus()


def check() -> None:
    """Compares everything with them, all reports too; the tests look at a share of these."""
    found = [*reports.check_reports(reports.every), *surface.check_surface(), *corpus.check_corpus()]
    print("\n".join(found) or "all is as it was")  # noqa: T201
    sys.exit(bool(found))


COMMANDS = {"write": write, "check": check, "database": stored.write_database}

if __name__ == "__main__":
    COMMANDS[(sys.argv[1:] or ["write"])[0]]()
