"""Exit codes, and which error maps to which."""

from __future__ import annotations

from enum import IntEnum

from service.errors import SETUP_CAUSES, CallgradeError, InputError, JudgeDownError, RubricError, SettingsError
from service.reporting.escaping import escape_unprintable

MAX_SHOWN_PROBLEMS = 10
"""How many problems of one error are printed."""

_ABSENCES = {
    "unauthorized": "the provider rejected the API key; set CALLGRADE_JUDGE_API_KEY or the provider's own variable",
    "unknown_model": "the provider has no model of that name; set another CALLGRADE_JUDGE_MODEL",
    "unreachable": "no server responds at its address; check CALLGRADE_JUDGE_API_BASE and the network",
}


def describe_absence(model: str, cause: str, *, verb: str = "answered no question") -> str:
    """Say what is wrong with a judge where every question to it ended with the same one of SETUP_CAUSES."""
    return f"the judge {model} {verb}: {_ABSENCES[cause]}"


class ExitCode(IntEnum):
    """How a command ended."""

    meaning: str
    """When a command ends so, as the manual says it."""

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        """Make a code with its meaning."""
        made = int.__new__(cls, value)
        made._value_ = value
        made.meaning = meaning
        return made

    PASSED = 0, "Every verdict is `pass` or `warn`, and every assertion holds."
    INTERNAL = 1, "A bug in callgrade."
    FAILED = (
        2,
        (
            "A verdict is `fail`, the mean score is below `--fail-under`, an assertion fails, `compare` finds a regression, "
            "or a batch did not complete."
        ),
    )
    UNDECIDED = (
        3,
        "A verdict is `undecided`, no trace got a verdict, or an assertion or `compare` depends on open questions.",
    )
    CONFIG = (
        4,
        "An unknown rubric, an invalid rubric or setting, wrong usage, or a judge that answered no question at all.",
    )
    DATA = 5, "Bad data: input that cannot be read or scored."
    INTERRUPTED = 130, "Ctrl-C; what was scored until then is written."
    CLOSED = 141, "The reader of the output closed the pipe."


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
