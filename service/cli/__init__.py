"""The command line: one module per command, and what they share."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; `argv` defaults to the process's own arguments.

    `ExitCode` lists the codes. An error is one line on standard error; CALLGRADE_DEBUG adds the traceback.
    """
    from service.cli.app import run  # noqa: PLC0415 (the entry point stays light)

    # Our matrices are small: on a busy machine a second numpy thread waits for longer than the first one computes.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return run(sys.argv[1:] if argv is None else list(argv))
