"""Run a command, and turn any error into a line on standard error and an exit code."""

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


def run(argv: Sequence[str]) -> int:
    """Run the command in `argv` and return its exit code."""
    from service.cli.app import run_app  # noqa: PLC0415 (an import error here is no error of the command)

    _replace_unencodable()
    try:
        return _finish(run_app(argv))
    except Exception as error:
        if os.environ.get("CALLGRADE_DEBUG"):
            raise
        return _handle_failure(error)
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except SystemExit as stop:
        # typer exits by itself when the reader of the output closes the pipe.
        if isinstance(stop.__context__, BrokenPipeError):
            return _close_output()
        raise


def _finish(code: int | None) -> int:
    """Flush, so that a closed pipe shows up here, where it is not mistaken for an error of ours."""
    sys.stdout.flush()
    return code or ExitCode.PASSED


def _handle_failure(error: Exception) -> int:
    if isinstance(error, BrokenPipeError):
        return _close_output()
    if isinstance(error, ModuleNotFoundError):
        error = explain_missing(error) or error
    if isinstance(error, CallgradeError):
        _print_error(describe_error(error))
        return get_exit_code(error)
    if isinstance(error, typer.TyperException):
        _print_error(escape_unprintable(error.format_message()))
        command = getattr(getattr(error, "ctx", None), "command_path", "callgrade")
        print(f"See {command} --help.", file=sys.stderr)  # noqa: T201
        return ExitCode.CONFIG
    notes = "".join(f" ({note})" for note in getattr(error, "__notes__", ()))
    _print_error(escape_unprintable(f"this is a bug in callgrade: {type(error).__name__}: {error}{notes}"))
    print("Set CALLGRADE_DEBUG=1 to see the traceback.", file=sys.stderr)  # noqa: T201
    return ExitCode.INTERNAL


def _print_error(text: str) -> None:
    print(f"error: {text}", file=sys.stderr)  # noqa: T201


def _replace_unencodable() -> None:
    """Replace characters that the terminal's encoding lacks, so that no trace can end the run."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")


def _close_output() -> int:
    """Send Python's flush at exit to nowhere, since nobody is reading."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.CLOSED
