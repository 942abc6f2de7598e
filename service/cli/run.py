"""Runs a command and turns whatever went wrong into a line on standard error and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import typer

from service.cli.exits import ExitCode, describe_error, get_exit_code
from service.cli.extras import explain_missing
from service.errors import CallgradeError
from service.reporting.escaping import escape_unprintable

# What typer raises for a command called wrongly; it has no public name for the class itself.
USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]


def run(argv: Sequence[str]) -> int:
    """The exit code of the command in `argv`."""
    from service.cli.app import run_app  # noqa: PLC0415 (so that its import errors are caught by nobody but the reader)

    _speak_everything()
    try:
        return _finish(run_app(argv))
    except Exception as error:
        if os.environ.get("CALLGRADE_DEBUG"):
            raise
        return _handle_failure(error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except SystemExit as stop:
        # typer ends the process itself when the reader of the output has gone.
        if isinstance(stop.__context__, BrokenPipeError):
            return _close_output()
        raise


def _finish(code: int | None) -> int:
    """Flushing here shows a closed pipe while it can still be told from an error of ours."""
    sys.stdout.flush()
    return code or ExitCode.PASSED


def _handle_failure(error: Exception) -> int:
    if isinstance(error, BrokenPipeError):
        return _close_output()
    if isinstance(error, ModuleNotFoundError):
        error = explain_missing(error) or error
    if isinstance(error, CallgradeError):
        _say(describe_error(error))
        return get_exit_code(error)
    if isinstance(error, USAGE_ERROR):
        _say(escape_unprintable(getattr(error, "format_message", error.__str__)()))
        called = getattr(getattr(error, "ctx", None), "command_path", "callgrade")
        print(f"{called} --help tells how it is called.", file=sys.stderr)  # noqa: T201
        return ExitCode.CONFIG
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    _say(escape_unprintable(f"this is a fault of callgrade: {type(error).__name__}: {error}{notes}"))
    print("CALLGRADE_DEBUG=1 shows where.", file=sys.stderr)  # noqa: T201
    return ExitCode.INTERNAL


def _say(text: str) -> None:
    print(f"error: {text}", file=sys.stderr)  # noqa: T201


def _speak_everything() -> None:
    """No character of a trace can end the run because the terminal's encoding lacks it."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _close_output() -> int:
    """Python flushes at exit; with nobody reading, that must go nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.CLOSED
