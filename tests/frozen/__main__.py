"""Writes anew what is frozen: `python -m tests.frozen`, or of it `keys` or `reports`; `check` compares all of it."""

from __future__ import annotations

import argparse
import sys

from tests.frozen import keys, reports

PARTS = {"keys": keys.write_keys, "reports": reports.write_reports}


def check() -> None:
    """Compares everything, all reports too; the tests look at a share of these."""
    found = [*reports.check_reports(reports.every), *keys.check_keys()]
    print("\n".join(found) or "all is as it was")  # noqa: T201
    sys.exit(bool(found))


COMMANDS = {**PARTS, "check": check}

if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m tests.frozen", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*COMMANDS, []], metavar="|".join(COMMANDS))
    for name in parser.parse_args().parts or PARTS:
        COMMANDS[name]()
