"""Writes anew what is frozen: `python -m tests.frozen`, or of it `surface`, `bodies`, `reports`.

`check` compares all reports.
"""

from __future__ import annotations

import argparse
import sys

from tests.frozen import corpus, reports, surface

PARTS = {"surface": surface.write_surface, "bodies": corpus.write_corpus, "reports": reports.write_reports}
"""What is written by default, by the names in `test_frozen.py`."""


def check() -> None:
    """Compares everything with them, all reports too; the tests look at a share of these."""
    found = [*reports.check_reports(reports.every), *surface.check_surface(), *corpus.check_corpus()]
    print("\n".join(found) or "all is as it was")  # noqa: T201
    sys.exit(bool(found))


COMMANDS = {**PARTS, "check": check}

if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m tests.frozen", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="|".join(COMMANDS))
    parts = parser.parse_args().parts or PARTS
    for unknown in {*parts} - {*COMMANDS}:
        parser.error(f"there is no {unknown}: {', '.join(COMMANDS)}")
    for name in parts:
        COMMANDS[name]()
