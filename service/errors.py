"""Every error callgrade raises. Each class says whether trying again can help; none knows of HTTP or exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input: where (JSON pointer, "" for the whole) and what was expected there."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or 'the document'}: {self.message}"


class CallgradeError(Exception):
    """The root of the tree."""

    retryable = False


class InputError(CallgradeError):
    """Input that cannot be scored: a trace, an expectation or a request. `problems` names every place."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))

    def below(self, path: str) -> InputError:
        """The same error with every place moved below `path`."""
        return type(self)(Problem(path + problem.path, problem.message) for problem in self.problems)

    def in_file(self, name: str) -> InputError:
        """The same error with the file before every place, and a line as editors know it: `FILE:LINE: /pointer`."""
        return type(self)(Problem(_name_place(name, problem.path), problem.message) for problem in self.problems)

    @classmethod
    def at(cls, path: str, message: str) -> InputError:
        """An error with one problem."""
        return cls([Problem(path, message)])


def _name_place(file: str, path: str) -> str:
    """A place of a file; what names it already stays.

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
    """A limit on size was passed: body, items, depth, string length."""


class RubricError(InputError):
    """A rubric that cannot be used."""


class UnknownRubricError(RubricError):
    """No rubric of that name."""


class SettingsError(InputError):
    """A setting that cannot be used."""


class SandboxError(CallgradeError):
    """A sandbox that did not do what it was asked. Told in the report; no request fails for it."""

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
"""Why a judge gave no verdict. None of them is ever a number."""

NOBODY_THERE: frozenset[str] = frozenset({"unauthorized", "unknown_model", "unreachable"})
"""The causes that no question has to do with: where every one ends so, the judge is not set up rightly."""


class JudgeError(CallgradeError):
    """A judge that gave no verdict. Told in the report as an errored outcome; no request fails for it by itself."""

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
        """The model that was asked, where whoever asked has noted it."""
        self.reason = reason
        self.retryable = retryable
        self.retry_after = retry_after
        """Seconds for which the provider asked to be left alone."""
        super().__init__(f"{cause}: {reason}")


class DaySpentError(JudgeError):
    """A question that was not put: a tenant has used up its day, or nobody can tell now whether it has."""

    def __init__(self, reason: str, *, retry_after: float) -> None:
        super().__init__("budget_exhausted", reason, retry_after=retry_after)


class JudgeDownError(CallgradeError):
    """A judge gave no verdict, and the request said that it must."""

    retryable = True

    def __init__(self, message: str, cause: str) -> None:
        self.cause = cause
        """That of the judge's outcome, a `FaultCause`."""
        super().__init__(message)


class BusyError(CallgradeError):
    """No room for more work now."""

    retryable = True


class AllowanceSpentError(BusyError):
    """A tenant has used up its day, and nothing was asked. `retry_after`: seconds until the next one."""

    def __init__(self, message: str, *, retry_after: float) -> None:
        self.retry_after = retry_after
        super().__init__(message)


class QueueFullError(BusyError):
    """As much work waits as may wait."""


class UnknownJobError(CallgradeError):
    """No batch of that id."""


class UnknownItemError(CallgradeError):
    """No item, label, kept score or fit of that id."""


class OthersLabelError(CallgradeError):
    """A label is another annotator's."""


class JobStateError(CallgradeError):
    """A batch is not in a state in which that can be done with it."""


class JobGoneError(CallgradeError):
    """A batch that was there, and was deleted."""


class KeyReusedError(CallgradeError):
    """A key that stands for one submission was given to another one."""


class KeyBusyError(CallgradeError):
    """A key stands for a request that is still being worked on."""

    retryable = True


class BadLinesError(InputError):
    """Items of a batch that cannot be taken. `problems` names the first of them; the message says how many there are."""

    def __init__(self, problems: Iterable[Problem], message: str) -> None:
        super().__init__(problems)
        self.message = message
