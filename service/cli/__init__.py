"""The command line: one module for each command, and what they share."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; `argv` defaults to the process's own arguments.

    0 passed, 1 an error of ours, 2 a verdict is fail or the mean is too low, 4 something is configured or called wrongly,
    5 data cannot be read. Errors are told in a line on standard error, with a traceback only under CALLGRADE_DEBUG.
    """
    from service.cli.run import run  # noqa: PLC0415 (the entry point stays light)

    # Our matrices are small: a second thread of numpy's waits, at full load, for longer than the first takes.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return run(sys.argv[1:] if argv is None else list(argv))
