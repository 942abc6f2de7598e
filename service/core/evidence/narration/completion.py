"""Find claims of completion and admissions of failure, and claims of completion after a likely error."""

from __future__ import annotations

import re

from service.core.evidence.narration.verdicts import ClaimVerdict
from service.core.trace import Step, ToolFailure

_DONE = (
    r"(?:done|complete[ds]?|success\w*|booked|sent|refunded|cancell?ed|updated|created|scheduled|confirmed|processed)\b"
)
_NO_FAULT = re.compile(r"\b(?:no|without(?: any)?|zero) (?:error|failure|problem)s?\b", re.IGNORECASE)
_ADMITS = re.compile(
    r"\b(?:fail\w*|error\w*|unable|could ?n[o']t|can ?n[o']t|cannot|d(?:id|oes) ?n[o']t|was ?n[o']t|can only"
    r"|unsuccessful\w*|went wrong|ran into|not (?:able|found|possible|available)|declined|rejected|denied|timed out|sorry"
    r"|unfortunately)\b"
    rf"|(?:\bnot|n't|\bnever) (?:yet |been |be )*{_DONE}",
    re.IGNORECASE,
)
_CLAIMS = re.compile(rf"\b{_DONE}", re.IGNORECASE)


def admits_failure(text: str) -> bool:
    """Whether a text says that something failed.

    >>> admits_failure("It could not be sent."), admits_failure("Only paid orders can be sent; it can only wait.")
    (True, True)
    >>> admits_failure("Done, no errors.")
    False
    """
    return bool(_ADMITS.search(_NO_FAULT.sub("", text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))))


def find_completion(text: str) -> re.Match[str] | None:
    """Find where a text says that something is done.

    >>> find_completion("I have sent the mail.").group()
    'sent'
    """
    return _CLAIMS.search(text)


class LikelyErrors:
    """The likely errors so far that neither a later success of the same tool nor an admission of failure has settled."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[int, ToolFailure]] = {}

    def add(self, step: Step) -> None:
        """Note a likely error, or clear an earlier one of the same tool after a success."""
        if step.result is None or step.result.is_error:
            return
        if step.result.failure is not None:
            self._open[step.call.name] = step.index, step.result.failure
        else:
            self._open.pop(step.call.name, None)

    def check(self, text: str, path: str) -> tuple[ClaimVerdict, ...]:
        """Return the suspicions against a text that says something is done and admits no failure."""
        if not self._open:
            return ()
        if admits_failure(text):
            self._open.clear()
            return ()
        done = find_completion(text)
        return () if done is None else tuple([_suspect(path, done, *error) for error in sorted(self._open.items())])


def _suspect(path: str, done: re.Match[str], tool: str, likely: tuple[int, ToolFailure]) -> ClaimVerdict:
    note = f"{tool} seems to have failed ({likely[1].reason}), and the text claims completion"
    code = "claimed_success_after_error"
    return ClaimVerdict(path, *done.span(), done.group(), "suspected", likely[1].path, None, code, note)
