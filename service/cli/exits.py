"""Exit codes, and which error gets which."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum

from service.errors import SETUP_CAUSES, CallgradeError, InputError, JudgeDownError, Problem, RubricError, SettingsError
from service.reporting.escaping import escape_unprintable

NO_JUDGE = {
    "unauthorized": "no key that its provider accepts; expected CALLGRADE_JUDGE_API_KEY or the provider's own variable",
    "unknown_model": "its provider has no model of that name; expected another CALLGRADE_JUDGE_MODEL",
    "unreachable": "nobody answers at its address; expected CALLGRADE_JUDGE_API_BASE or the network to be right",
}
"""What is wrong where every question to a judge ends so, by the cause."""

SHOWN = 10
"""How many places of one error are told at most."""


class ExitCode(IntEnum):
    """What the process says of a run."""

    PASSED = 0
    INTERNAL = 1
    FAILED = 2
    """A verdict is `fail`, or the mean score lies below what was asked for; a batch came to another end than it should."""
    UNDECIDED = 3
    """A verdict is `abstain`, or no trace got one; an assertion depends on what is open."""
    CONFIG = 4
    """An unknown rubric, a rubric or setting that cannot be used, a command that was called wrongly; a judge that was asked and
    answered nothing at all."""
    DATA = 5
    """Input that cannot be read or scored."""
    INTERRUPTED = 130
    CLOSED = 141
    """Whoever read the output stopped reading."""


def get_exit_code(error: CallgradeError) -> ExitCode:
    """The exit code of an error that ends the run.

    >>> get_exit_code(SettingsError.at("CALLGRADE_PORT", "expected a number")), get_exit_code(InputError.at("", "no"))
    (<ExitCode.CONFIG: 4>, <ExitCode.DATA: 5>)
    """
    if isinstance(error, RubricError | SettingsError):
        return ExitCode.CONFIG
    if isinstance(error, JudgeDownError) and error.cause in SETUP_CAUSES:
        return ExitCode.CONFIG
    return ExitCode.DATA if isinstance(error, InputError) else ExitCode.INTERNAL


def describe_error(error: CallgradeError, *, where: str = "") -> str:
    """The error for a person: one line, or a line for each of several places.

    >>> describe_error(InputError.at("/trace", "missing"), where="a.json:3")
    'a.json:3: /trace: missing'
    """
    head = f"{where}: " if where else ""
    if not isinstance(error, InputError):
        return escape_unprintable(f"{head}{error}")
    lines = list(_list_lines(error.problems))
    if len(lines) == 1:
        return head + lines[0]
    return "\n  ".join([f"{head}{len(error.problems)} problems", *lines])


def _list_lines(problems: tuple[Problem, ...]) -> Iterator[str]:
    for problem in problems[:SHOWN]:
        yield escape_unprintable(f"{problem.path}: {problem.message}" if problem.path else problem.message)
    if len(problems) > SHOWN:
        yield f"and {len(problems) - SHOWN} more"


def join_words(words: Iterable[str]) -> str:
    """Words with commas between them, `-` for none."""
    return ", ".join(words) or "-"
