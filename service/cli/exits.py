"""Exit codes, and which error maps to which."""

from __future__ import annotations

from enum import IntEnum

from service.errors import SETUP_CAUSES, CallgradeError, InputError, JudgeDownError, RubricError, SettingsError
from service.reporting.escaping import escape_unprintable

MAX_SHOWN_PROBLEMS = 10
"""How many problems of one error are printed."""


def describe_absence(model: str, cause: str, *, verb: str = "answered no question") -> str:
    """Say what is wrong with a judge, and what to do, where every question to it ended with the same one of SETUP_CAUSES."""
    from service.reading.packaged_files import read_explanations  # noqa: PLC0415 (help loads no pydantic)

    what, fix = (text[0].lower() + text[1:].rstrip(".") for text in read_explanations()["causes"][cause])
    return f"the judge {model} {verb}: {what}; {fix}".replace("`", "")


class ExitCode(IntEnum):
    """How a command ended. `explanations.yaml` says what each means."""

    PASSED = 0
    INTERNAL = 1
    FAILED = 2
    UNDECIDED = 3
    CONFIG = 4
    DATA = 5
    INTERRUPTED = 130
    CLOSED = 141


def get_exit_code(error: CallgradeError) -> ExitCode:
    """Return the exit code for an error that ends the run.

    >>> get_exit_code(SettingsError.at("CALLGRADE_PORT", "expected a number")), get_exit_code(InputError.at("", "no"))
    (<ExitCode.CONFIG: 4>, <ExitCode.DATA: 5>)
    """
    if isinstance(error, RubricError | SettingsError):
        return ExitCode.CONFIG
    if isinstance(error, JudgeDownError) and error.cause in SETUP_CAUSES:
        return ExitCode.CONFIG
    return ExitCode.DATA if isinstance(error, InputError) else ExitCode.INTERNAL


def describe_error(error: CallgradeError, *, where: str = "") -> str:
    """Render an error for a person: one line, or one per problem where it has several.

    >>> describe_error(InputError.at("/trace", "missing"), where="a.json:3")
    'a.json:3: /trace: missing'
    """
    head = f"{where}: " if where else ""
    if not isinstance(error, InputError):
        return escape_unprintable(f"{head}{error}")
    shown = [f"{one.path}: {one.message}" if one.path else one.message for one in error.problems[:MAX_SHOWN_PROBLEMS]]
    lines, more = [escape_unprintable(line) for line in shown], len(error.problems) - len(shown)
    if len(lines) == 1:
        return head + lines[0]
    return "\n  ".join([f"{head}{len(error.problems)} problems", *lines, *([f"and {more} more"] if more else [])])
