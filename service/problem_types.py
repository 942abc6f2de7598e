"""The types of problem documents: when each occurs and what the reader can do. docs/errors.md is made from this list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from service.errors import (
    AllowanceSpentError,
    BadLinesError,
    BusyError,
    CallgradeError,
    DiskFullError,
    InputError,
    JobGoneError,
    JobStateError,
    JudgeDownError,
    KeyReusedError,
    MalformedError,
    OthersLabelError,
    QueueFullError,
    TooLargeError,
    UnknownItemError,
    UnknownJobError,
)

PAGE = "https://github.com/callgrade/callgrade/blob/main/docs/errors.md"


NO_REPORT = f"{PAGE}#items-of-a-batch-without-a-report"
"""The type of the problem of an item that no scoring gave: it was cancelled, expired or quarantined."""


@dataclass(frozen=True, slots=True)
class ProblemType:
    """One type of problem: its HTTP status and title, why it occurs, and what to do."""

    status: int
    title: str
    cause: str
    fix: str
    errors: tuple[type[CallgradeError], ...] = ()
    """The errors that it describes, with their subclasses; a status alone stands for the first type that has it."""

    @property
    def uri(self) -> str:
        """The address of its section in the manual."""
        return f"{PAGE}#{self.title.lower().replace(' ', '-')}"


TYPES = (
    ProblemType(
        400,
        "Malformed body",
        "The body is not the JSON that the service accepts: a syntax error, a key given twice, NaN, a number out of range, NUL "
        "or a lone surrogate.",
        "Correct the place that `errors` names.",
        (MalformedError,),
    ),
    ProblemType(
        400,
        "Invalid lines",
        "Some lines of a submission cannot be used. Nothing was stored.",
        "Correct the lines that `errors` names, or submit with `skip_invalid=true` to leave them out.",
        (BadLinesError,),
    ),
    ProblemType(
        401,
        "Unauthorized",
        "The request has no key, or the key is unknown, expired or revoked.",
        "Send a valid key as `Authorization: Bearer cg_...`; `callgrade keys create` makes one.",
    ),
    ProblemType(
        403,
        "Forbidden",
        "The key lacks the scope that the route needs. Or no key exists, and the request names another host than this machine or "
        "comes from a page of another site.",
        "Use a key with the scope that `detail` names. Without keys, add the host to `CALLGRADE_ALLOWED_HOSTS`.",
    ),
    ProblemType(
        403,
        "Label of another annotator",
        "The label that the request replaces or deletes belongs to another annotator.",
        "Use the key that made the label, or a key with the scope `admin`.",
        (OthersLabelError,),
    ),
    ProblemType(
        404,
        "Not found",
        "No route, rubric, batch, score, label or fit has this address, or it belongs to another tenant.",
        "Check the id, and that the key belongs to the tenant that created the object.",
        (UnknownItemError, UnknownJobError),
    ),
    ProblemType(
        405,
        "Method not allowed",
        "The address exists, but not with this HTTP method.",
        "Use a method that the `Allow` header of the answer names.",
    ),
    ProblemType(
        408,
        "Body too slow",
        "The body arrived more slowly than the service waits.",
        "Send the request again over a faster connection, or compress a batch with gzip.",
    ),
    ProblemType(
        409,
        "State conflict",
        "The state of the batch or calibration does not allow the operation, such as deleting it while it runs.",
        "Read its `status`, then wait or cancel it first.",
        (JobStateError,),
    ),
    ProblemType(
        410,
        "Deleted",
        "The submission with this `Idempotency-Key` was deleted.",
        "Submit it with another `Idempotency-Key`.",
        (JobGoneError,),
    ),
    ProblemType(
        413,
        "Too large",
        "The body exceeds a limit: bytes, depth, digits, length of a text, number of values or items.",
        "Make the request smaller, or split the batch; the operator can raise the limits in bytes and items (settings).",
        (TooLargeError,),
    ),
    ProblemType(
        415,
        "Unsupported media type",
        "The `Content-Type` or `Content-Encoding` of the body is not one that the route accepts.",
        "Send the types that the `Accept` or `Accept-Encoding` header of the answer names.",
    ),
    ProblemType(
        422,
        "Invalid request",
        "The body is JSON, but the trace, expectation, rubric or an option cannot be used.",
        "Correct the places that `errors` names; each says what was expected there.",
        (InputError,),
    ),
    ProblemType(
        422,
        "Idempotency key reused",
        "This `Idempotency-Key` was used for other content.",
        "Use a new key for new content; repeat the exact content to get the same batch.",
        (KeyReusedError,),
    ),
    ProblemType(
        429,
        "Too many requests",
        "The tenant uses its share of the process: requests, streams, bytes of bodies or threads.",
        "Send fewer requests at once, and try again after `Retry-After` seconds.",
    ),
    ProblemType(
        429,
        "Queue full",
        "As many batch items are waiting as the tenant, or the service, may have.",
        "Submit again after `Retry-After` seconds, or when other batches have ended.",
        (QueueFullError,),
    ),
    ProblemType(
        429,
        "Daily limit reached",
        "The tenant has used its questions or dollars of the day (UTC), so no judge was asked.",
        "Wait for `Retry-After` seconds, send `judges: off`, or ask the operator for more.",
        (AllowanceSpentError,),
    ),
    ProblemType(
        500,
        "Internal error",
        "A bug in callgrade.",
        "Report it with the log entry that has the id in `x-request-id`.",
    ),
    ProblemType(
        503,
        "Busy",
        "The service is starting or stopping, cannot reach its database, or other tenants use everything.",
        "Send the request again after `Retry-After` seconds.",
        (BusyError,),
    ),
    ProblemType(
        503,
        "Judge unavailable",
        'A judge did not answer, and the request said `"on_judge_error": "error"`.',
        "Send the request again later, or leave `on_judge_error` out: the report then shows the question as open.",
        (JudgeDownError,),
    ),
    ProblemType(
        507,
        "Disk full",
        "A disk of the service has no room for what must be stored. Nothing was stored.",
        "Free space on the server's disk; then send the request again.",
        (DiskFullError,),
    ),
)

BY_ERROR: Mapping[type[CallgradeError], ProblemType] = {error: one for one in TYPES for error in one.errors}
BY_STATUS: Mapping[int, ProblemType] = {one.status: one for one in reversed(TYPES)}
