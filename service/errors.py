"""Every error that callgrade raises. Each class says whether trying again can help; none knows HTTP or exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from typing_extensions import override


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input: where (a JSON pointer, "" for the whole input), and what was expected there."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or 'the document'}: {self.message}"


class CallgradeError(Exception):
    """The base class of every callgrade error."""

    retryable = False


class InputError(CallgradeError):
    """Input that cannot be scored: a trace, an expectation or a request. `problems` names every place that is wrong."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))

    def below(self, path: str) -> InputError:
        """Return the same error with every place moved below `path`."""
        return type(self)(Problem(path + problem.path, problem.message) for problem in self.problems)

    def in_file(self, name: str) -> InputError:
        """Return the same error with the file before every place, lines as editors write them: `FILE:LINE: /pointer`."""
        return type(self)(Problem(_name_place(name, problem.path), problem.message) for problem in self.problems)

    @classmethod
    def at(cls, path: str, message: str) -> InputError:
        """Build an error with one problem."""
        return cls([Problem(path, message)])


def _name_place(file: str, path: str) -> str:
    """Put the file name before a place, unless it is there already.

    >>> _name_place("a.jsonl", "line 3: /id"), _name_place("a.jsonl", "/id"), _name_place("a.jsonl", "")
    ('a.jsonl:3: /id', 'a.jsonl: /id', 'a.jsonl')
    """
    if path == file or path.startswith(f"{file}:"):
        return path
    line = re.match(r"line (\d+)(?:: |$)", path)
    place, rest = (f"{file}:{line[1]}", path[line.end() :]) if line else (file, path)
    return f"{place}: {rest}" if rest else place


class MalformedError(InputError):
    """Bytes that are not the JSON we accept: bad syntax, a duplicate key, a number out of range, a NUL."""


class TooLargeError(InputError):
    """Input over a size limit: body, items, depth or string length."""


class RubricError(InputError):
    """A rubric that cannot be used."""


class UnknownRubricError(RubricError):
    """A rubric id or version that does not exist."""


class SettingsError(InputError):
    """A setting that cannot be used."""


class SandboxError(CallgradeError):
    """A sandbox that did not do what it was asked. The report says so; the request does not fail."""

    retryable = True


class WebhookError(CallgradeError):
    """A webhook that was not delivered. `retryable` says whether another try may help."""

    def __init__(self, message: str, *, retryable: bool) -> None:
        self.retryable = retryable
        super().__init__(message)


FaultCause = Literal[
    "refused",
    "unparseable",
    "truncated",
    "filtered",
    "invalid_judgement",
    "provider_error",
    "timeout",
    "unauthorized",
    "unknown_model",
    "unreachable",
    "quota_exhausted",
    "budget_exhausted",
]
"""Why a judge gave no verdict. No cause ever becomes a number."""

NO_JUDGE_MODEL = (
    "no judge model is set: set CALLGRADE_JUDGE_MODEL (such as openai/gpt-5-mini), and CALLGRADE_JUDGE_API_KEY or the provider's "
    "own variable to its key; for a server of your own, CALLGRADE_JUDGE_API_BASE to its address. Or ask no judge (off)"
)
"""What is missing where judges are asked for and nobody has set one up."""

SETUP_CAUSES: frozenset[str] = frozenset({"unauthorized", "unknown_model", "unreachable"})
"""Causes that do not depend on the question: if every question ends in one, the judge is not set up correctly."""


class JudgeError(CallgradeError):
    """A judge that gave no verdict. The report shows an errored outcome; by itself this fails no request."""

    def __init__(
        self,
        cause: FaultCause,
        reason: str,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
        model: str | None = None,
    ) -> None:
        self.cause: FaultCause = cause
        self.model = model
        """The model that was asked, if the caller recorded it."""
        self.reason = reason
        self.retryable = retryable
        self.retry_after = retry_after
        """Seconds to wait before the next request, as the provider asked."""
        super().__init__(f"{cause}: {reason}")

    @override
    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, vars(self))  # an exception is otherwise copied by its message alone


def _rebuild(kind: type[JudgeError], args: tuple[str, ...], state: dict[str, object]) -> JudgeError:
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


class DaySpentError(JudgeError):
    """A question that was not asked: the tenant's day is used up, or its usage cannot be read now."""

    def __init__(self, reason: str, *, retry_after: float) -> None:
        super().__init__("budget_exhausted", reason, retry_after=retry_after)


class BatchSpentError(JudgeError):
    """A question that was not asked: its batch has used up its budget, or its questions."""

    def __init__(self, reason: str) -> None:
        super().__init__("budget_exhausted", reason)


class JudgeDownError(CallgradeError):
    """A judge gave no verdict, and the request demands one."""

    retryable = True

    def __init__(self, message: str, cause: str, *, retry_after: float = 1.0) -> None:
        self.cause = cause
        """The cause of the judge's outcome, a `FaultCause`."""
        self.retry_after = retry_after
        """Seconds until the model may be asked again."""
        super().__init__(message)


class BusyError(CallgradeError):
    """There is no room for more work now."""

    retryable = True


class DiskFullError(BusyError):
    """A disk has no room for what must be kept; nothing of it was kept."""


class AllowanceSpentError(BusyError):
    """A tenant's day is used up, and nothing was asked. `retry_after`: seconds until its next day."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class QueueFullError(BusyError):
    """The queue holds as much work as it may."""


class UnknownJobError(CallgradeError):
    """There is no batch with that id."""


class UnknownItemError(CallgradeError):
    """There is no item, label, kept score or fit with that id."""


class OthersLabelError(CallgradeError):
    """The label belongs to another annotator."""


class JobStateError(CallgradeError):
    """The batch is in a state that does not allow the operation."""


class JobGoneError(CallgradeError):
    """The batch existed and was deleted."""


class KeyReusedError(CallgradeError):
    """An idempotency key was reused for a different submission."""


class BadLinesError(InputError):
    """Items of a batch that cannot be accepted. `problems` names the first ones; the message says how many there are."""

    def __init__(self, problems: Iterable[Problem], message: str) -> None:
        super().__init__(problems)
        self.message = message
