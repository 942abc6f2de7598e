"""Remove secrets from everything that is written: errors, logs, reports."""

from __future__ import annotations

import json
import re
from asyncio import CancelledError
from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import quote, quote_plus

MARK = "[redacted]"

MIN_SECRET_CHARS = 6
"""Shortest text that counts as a secret. Blanking out every `x` or `none` would hide nothing secret and much else."""

SECRET_NAMES = ("_API_KEY", "_TOKEN", "_SECRET")
"""How the names of variables with secrets end."""

_SHAPES: tuple[tuple[str, str], ...] = (
    (r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{6,}", rf"\1 {MARK}"),
    (r"(?i)([?&;](?:api[_-]?key|key|(?:access[_-]?)?token|secret|sig(?:nature)?)=)[^&;\s\"'<>]+", rf"\1{MARK}"),
    (r"(?i)((?:\b|x-)api[_-]?key[\"']?\s*[:=]\s*[\"']?)[^\s\"',;&}\[]+", rf"\1{MARK}"),
    (r"\b(?:sk|pk|rk)-[\w-]{8,}", MARK),
    (r"\b(?:gh[pousr]_|github_pat_|hf_|gsk_|xai-|AIza|AKIA|xox[abeprs]-)[\w-]{12,}", MARK),
    (r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*", MARK),
)


class Redactor:
    """Replaces secrets in a text with a mark: the configured ones, in every spelling, and texts of known shapes.

    >>> redact = Redactor(["correct horse/battery"])
    >>> redact("no such key: correct horse/battery")
    'no such key: [redacted]'
    >>> redact("GET /v1?name=a&key=correct%20horse%2Fbattery and Bearer abcdefgh, sk-0123456789")
    'GET /v1?name=a&key=[redacted] and Bearer [redacted], [redacted]'
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        """Texts shorter than `MIN_SECRET_CHARS` are no secrets."""
        long_enough = {secret for secret in map(str.strip, secrets) if len(secret) >= MIN_SECRET_CHARS}
        self._count = len(long_enough)
        forms = sorted({form for secret in long_enough for form in _spell_forms(secret)}, key=len, reverse=True)
        exact = "|".join(map(_build_pattern, forms))
        self._rules = [(re.compile(exact), MARK)] if exact else []
        self._rules += [(re.compile(shape), mark) for shape, mark in _SHAPES]

    def __repr__(self) -> str:
        return f"Redactor({self._count} secrets)"

    def __call__(self, text: str) -> str:
        """Return the text without secrets."""
        for pattern, mark in self._rules:
            text = pattern.sub(mark, text)
        return text

    @classmethod
    def from_env(cls, environ: Mapping[str, str], secrets: Iterable[str] = ()) -> Redactor:
        """Build a redactor of these secrets and of every variable with a name that ends as in `SECRET_NAMES`."""
        values = [value for name, value in environ.items() if name.upper().endswith(SECRET_NAMES)]
        return cls([*values, *secrets])


def _spell_forms(secret: str) -> Iterator[str]:
    """Yield the secret as plain text, URLs, JSON and `repr` spell it."""
    yield secret
    yield from (quote(secret), quote(secret, safe=""), quote_plus(secret))
    for ascii_only in (True, False):
        yield json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
    yield json.dumps(secret)[1:-1].replace("/", "\\/")
    yield repr(secret)[1:-1]
    yield repr(secret.encode())[2:-1]


def _build_pattern(form: str) -> str:
    """Build a pattern for the form. In a URL, %2f is the same as %2F."""
    return re.sub(r"%([0-9A-F]{2})", r"%(?i:\1)", re.escape(form))


def name_error_kind(error: Exception) -> str:
    """Name the kind of an error, or of its cause, if its text may contain an address with a password.

    >>> name_error_kind(TimeoutError())
    'TimeoutError'
    """
    cause = error.__cause__
    return type(error if cause is None or isinstance(cause, CancelledError) else cause).__name__
