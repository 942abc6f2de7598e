"""Writes anew what is frozen: `python -m tests.frozen`, or of it `keys` or `reports`; `check` compares all of it."""

from __future__ import annotations

import argparse
import logging
import sys

from tests.frozen import keys, reports

MOST_PRINTED = 20
PARTS = {"keys": keys.write_keys, "reports": reports.write_reports}


def check() -> None:
    """Compares everything, all reports too; the tests look at a share of these."""
    logging.disable()  # own checks fail on purpose
    found = [*reports.check_reports(reports.every), *keys.check_keys()]
    more = [f"and {len(found) - MOST_PRINTED} more"] if len(found) > MOST_PRINTED else []
    print("\n".join([*found[:MOST_PRINTED], *more]) or "all is as it was")  # noqa: T201
    sys.exit(bool(found))


COMMANDS = {**PARTS, "check": check}

if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m tests.frozen", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*COMMANDS, []], metavar="|".join(COMMANDS))
    for name in parser.parse_args().parts or PARTS:
        COMMANDS[name]()
