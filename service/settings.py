"""The settings: read once from the environment, at the edge, and passed on as a value."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeVar, get_args
from urllib.parse import urlsplit

from service.core.models.kinds import read_texts
from service.core.report import JudgeMode
from service.errors import Problem, SettingsError

PREFIX = "CALLGRADE_"
READ_ELSEWHERE = frozenset({"CALLGRADE_API_KEY", "CALLGRADE_DEBUG", "CALLGRADE_SERVER"})
"""Variables of the command line: those of the HTTP client, and one that works even if the settings are bad."""

T = TypeVar("T")
W = TypeVar("W", bound=str)


@dataclass(frozen=True, slots=True)
class SettingFormat(Generic[T]):
    """How text becomes a value. `read` raises ValueError or KeyError for text that is not `expected`."""

    read: Callable[[str], T]
    expected: str


def build_whole(low: int, high: int) -> SettingFormat[int]:
    """Build the format of a whole number within bounds."""

    def read(text: str) -> int:
        # int() alone would take " 8000", "8_000" and digits of any script.
        if not (text.isascii() and text.isdigit() and len(text) <= 18 and low <= int(text) <= high):
            raise ValueError
        return int(text)

    return SettingFormat(read, f"a whole number from {low} to {high}")


def _build_choice(words: tuple[W, ...]) -> SettingFormat[W]:
    def read(text: str) -> W:
        return words[[word.lower() for word in words].index(text.lower())]

    return SettingFormat(read, f"one of {', '.join(words)}")


def _parse_dollars(text: str) -> float | None:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text, re.ASCII):
        raise ValueError
    return float(text) or None


def _parse_host(text: str) -> str:
    if any(map(str.isspace, text)):
        raise ValueError
    return text


def _parse_path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # no home folder is known
        raise ValueError from error


def _parse_paths(text: str) -> tuple[Path, ...]:
    return tuple(_parse_path(part) for part in text.split(os.pathsep) if part)


_AUTHORITY = re.compile(r"(?:\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::[0-9]{1,5})?")


def _parse_authorities(text: str) -> tuple[str, ...]:
    authorities = tuple(part.strip().lower() for part in text.split(",") if part.strip())
    if not all(_AUTHORITY.fullmatch(one) for one in authorities):
        raise ValueError
    return authorities


_STORES = {"redis": "host", "rediss": "host", "unix": "path"}
"""The part that a URL of each scheme must have."""


def _parse_store(text: str) -> str:
    parts = urlsplit(text)  # it and `port` raise ValueError for a bad URL
    needed = {"host": parts.hostname, "path": parts.path.strip("/")}
    if text and (parts.port == 0 or parts.fragment or not needed.get(_STORES.get(parts.scheme, ""))):
        raise ValueError
    return text


_DATABASES = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgresql+psycopg": "postgresql+psycopg"}
"""SQLAlchemy's name for each accepted scheme."""


def _parse_database(text: str) -> str:
    scheme, colon, rest = text.partition("://")
    if not text:
        return ""
    if not colon or scheme not in _DATABASES or not rest.strip("/"):
        raise ValueError
    parts = urlsplit(f"x://{rest}")
    if parts.netloc.count("@") > 1 or parts.port == 0:  # `port` raises ValueError for a bad port
        raise ValueError
    return f"{_DATABASES[scheme]}://{rest}"


ReplyForm = Literal["auto", "schema", "tool", "text"]
_MODE: SettingFormat[JudgeMode] = _build_choice(get_args(JudgeMode))


def _split_names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


AUTHORITIES = SettingFormat(_parse_authorities, "hosts with or without a port, with commas between them")
DOLLARS = SettingFormat(_parse_dollars, "an amount such as 20 or 0.5, in US dollars; 0: no limit")
FLAG = SettingFormat(lambda text: {"true": True, "false": False}[text.lower()], "true or false")
JUDGES: SettingFormat[JudgeMode | None] = SettingFormat(lambda text: _MODE.read(text) if text else None, _MODE.expected)
HOST = SettingFormat(_parse_host, "a host name or an address")
WORD = SettingFormat(_parse_host, "text without spaces")
LEVEL = _build_choice(("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))
NAMES = SettingFormat(_split_names, "names with commas between them")
REPLY: SettingFormat[ReplyForm] = _build_choice(get_args(ReplyForm))
PATH = SettingFormat(_parse_path, "a path; ~ is the home folder")
DATABASE = SettingFormat(_parse_database, "postgresql://user@host:port/name or sqlite:///path")
STORE = SettingFormat(_parse_store, "redis://host:port/number, rediss:// for TLS or unix:// for a socket")
PATHS = SettingFormat(_parse_paths, f"paths, with {os.pathsep!r} between them")


class _Setting(NamedTuple):
    """Metadata of a field: its default as the text one would set, its format, and whether errors and `repr` hide it."""

    default: str
    form: SettingFormat[Any]
    secret: bool


def _define(default: str, form: SettingFormat[T], *, secret: bool = False) -> T:
    """Define a field; its docstring is its meaning in docs/reference.md."""
    metadata = {"setting": _Setting(default, form, secret)}
    return field(default_factory=lambda: form.read(default), metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings. `Settings()` holds the defaults; the field `x_y` is read from the variable `CALLGRADE_X_Y`.

    `Settings()` raises ValueError if `~` has no meaning because there is no home folder; `from_env` names the variable.
    """

    host: str = _define("127.0.0.1", HOST)
    """Address to listen on."""
    port: int = _define("8000", build_whole(1, 65_535))
    """Port to listen on."""
    max_body_bytes: int = _define("4194304", build_whole(1_024, 2**30))
    """Largest request body, in bytes."""
    max_concurrency: int = _define("200", build_whole(1, 100_000))
    """Requests processed at once. A tenant gets as many as it leaves free for others; more are answered with 429."""
    max_streams: int = _define("200", build_whole(1, 100_000))
    """Batches sent or fetched at once, and as many watched; shared among tenants in the same way."""
    max_bodies_bytes: int = _define("268435456", build_whole(1_024, 2**40))
    """Bytes of request bodies in memory at once; shared among tenants in the same way."""
    max_uploads_bytes: int = _define("4294967296", build_whole(1_024, 2**40))
    """Bytes of uploads on the temporary disk at once, at most what is free there; shared among tenants in the same way."""
    allowed_hosts: tuple[str, ...] = _define("", AUTHORITIES)
    """Hosts, or host:port, under which the service may be called while it requires no key, besides localhost; separated
    by commas.
    """
    graceful_seconds: int = _define("20", build_whole(0, 3_600))
    """Time for running requests to end at shutdown, in seconds."""
    log_level: str = _define("INFO", LEVEL)
    """Least severe log record written: DEBUG, INFO, WARNING, ERROR, CRITICAL."""
    home: Path = _define("~/.callgrade", PATH)  # noqa: RUF009 (it is field())
    """Folder of the user's own rubrics, fits, cache and store."""
    rubric_dirs: tuple[Path, ...] = _define("", PATHS)
    """More folders with rubrics, separated as in PATH."""
    fit_max_age_days: int = _define("90", build_whole(0, 36_500))
    """Age beyond which a fit is stale, in days; 0: never."""
    store_scores: bool = _define("false", FLAG)
    """Whether traces of /v1/score are kept with their reports if a request does not say (`store`)."""
    sandbox_hosts: tuple[str, ...] = _define("", AUTHORITIES)
    """Hosts, or host:port, of the sandboxes that requests may name, separated by commas."""
    sandbox_allow_private: bool = _define("false", FLAG)
    """Whether a sandbox may have a private or loopback address."""
    sandbox_timeout: int = _define("10", build_whole(1, 600))
    """Time for a sandbox to execute the calls of a trace, in seconds."""
    cache_url: str = _define("", STORE, secret=True)
    """Redis that stores judgements for several machines; empty: on disk, below the home."""
    cache_ttl_days: int = _define("30", build_whole(1, 3_650))
    """How long a judgement is kept, in days."""
    cache_max_bytes: int = _define("1073741824", build_whole(2**20, 2**40))
    """Largest cache on disk, in bytes; the oldest judgements go first."""
    judges: JudgeMode | None = _define("", JUDGES)  # noqa: RUF009 (likewise)
    """How judges are asked if a request does not say: off (leave out what only they can answer), cached, live or fresh; empty:
    live if a model is set, else what only they can answer is open.
    """
    judge_model: str = _define("", WORD)
    """Model that judges, as litellm names it (openai/gpt-5-mini); empty: no judge is asked."""
    judge_models: tuple[str, ...] = _define("", NAMES)
    """Further models that requests may name, separated by commas."""
    judge_api_base: str = _define("", WORD)
    """Address of an OpenAI-compatible server; empty: the provider's own."""
    judge_api_key: str = _define("", WORD, secret=True)
    """Key for the model; empty: litellm reads the provider's own variable."""
    judge_reply: ReplyForm = _define("auto", REPLY)  # noqa: RUF009 (likewise)
    """How a model is made to reply with an object: auto, schema, tool or text."""
    judge_attempts: int = _define("3", build_whole(1, 10))
    """Most requests for one question, including the first."""
    judge_deadline: int = _define("0", build_whole(0, 3_600))
    """Seconds for one reply of a model; 0: 60 for a hosted one, 1,800 for one on a local server."""
    judge_in_flight: int = _define("64", build_whole(1, 10_000))
    """Most concurrent calls to one model, in each process that asks judges."""
    request_max_questions: int = _define("1000", build_whole(1, 10**6))
    """Most requests to judges for one request or batch item; every vote of every model counts."""
    request_max_usd: float | None = _define("20", DOLLARS)
    """Most that judges may cost for one request or batch item, in US dollars; 0: no limit."""
    database_url: str = _define("", DATABASE, secret=True)
    """PostgreSQL that stores batches and keys for several machines; empty: SQLite, the file `store.db` in the home."""
    worker: bool = _define("true", FLAG)
    """Whether `callgrade serve` starts a worker for batches."""
    batch_in_flight: int = _define("64", build_whole(1, 10_000))
    """Batch items processed at once in one worker."""
    batch_chunk: int = _define("250", build_whole(1, 10_000))
    """Batch items given to a worker at a time; four times as many of those up to 4 KiB that ask no judge."""
    batch_max_items: int = _define("100000", build_whole(1, 10_000_000))
    """Most items in one batch."""
    batch_max_bytes: int = _define("1073741824", build_whole(1_024, 2**40))
    """Largest body of a batch, decompressed, in bytes."""
    batch_max_queued: int = _define("1000000", build_whole(1, 10**12))
    """Most items that may wait in total; a batch that does not fit is answered with 429."""
    batch_max_usd: float | None = _define("0", DOLLARS)
    """Most that judges may cost for one batch, in US dollars, and the default for batches without a budget; 0: no
    limit.
    """
    batch_max_questions: int = _define("0", build_whole(0, 10**12))
    """Most requests to judges for one batch, and the default for batches without a limit; 0: no limit."""
    batch_hours: int = _define("24", build_whole(1, 8_760))
    """Time for a batch to end if it sets no deadline, in hours."""
    batch_days: int = _define("30", build_whole(1, 3_650))
    """How long a batch, with its results and labels, is kept after its end, in days; the same for scores and imported
    items.
    """
    webhook_hosts: tuple[str, ...] = _define("", AUTHORITIES)
    """Hosts, or host:port, that batches may notify, separated by commas."""
    webhook_allow_private: bool = _define("false", FLAG)
    """Whether a webhook may have a private or loopback address."""
    webhook_secret: str = _define("", WORD, secret=True)
    """Secret that signs webhooks; required if webhook hosts are set."""
    first_key: bool = _define("false", FLAG)
    """Whether `callgrade serve` creates a key if there is none, and prints it once on standard error."""
    audit_days: int = _define("365", build_whole(1, 3_650))
    """How long the audit log is kept, in days."""
    tenant_max_concurrency: int = _define("0", build_whole(0, 100_000))
    """Requests of one tenant processed at once; 0: as many as it leaves free for others."""
    tenant_max_queued: int = _define("0", build_whole(0, 10**12))
    """Batch items of one tenant that may wait; 0: as many as there is room for."""
    tenant_day_max_questions: int = _define("1000000", build_whole(0, 10**12))
    """Requests to judges for one tenant per day (UTC), across all processes; 0: no limit."""
    tenant_day_max_usd: float | None = _define("1000", DOLLARS)
    """Most that judges may cost one tenant per day (UTC), across all processes, in US dollars; 0: no limit."""
    unknown: tuple[str, ...] = ()
    """Variables with our prefix that belong to no setting: most likely misspelt, so worth a warning."""

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """Read the settings from `environ`. An absent or empty variable leaves the default.

        Raises SettingsError naming every variable with a bad value, and what was expected.
        """
        values: dict[str, object] = {}
        problems: list[Problem] = []
        for name, one in _find_settings().items():
            variable = PREFIX + name.upper()
            text = environ.get(variable) or one.default
            try:
                values[name] = one.form.read(text)
            except (ValueError, KeyError):
                actual = "what it is set to" if one.secret else repr(text)
                problems.append(Problem(variable, f"expected {one.form.expected}, not {actual}"))
        if problems:
            raise SettingsError(problems)
        return cls(**values, unknown=_find_unknown(environ))  # pyright: ignore[reportArgumentType] (each was read by its own format)


def _find_settings() -> dict[str, _Setting]:
    """Map each field to its metadata."""
    return {one.name: one.metadata["setting"] for one in fields(Settings) if one.metadata}


def _find_unknown(environ: Mapping[str, str]) -> tuple[str, ...]:
    known = READ_ELSEWHERE | {PREFIX + name.upper() for name in _find_settings()}
    return tuple(sorted(name for name in environ if name.startswith(PREFIX) and name not in known))


def list_settings() -> list[tuple[str, str, str]]:
    """List (variable, default, meaning) of every setting, in field order. A default may be ""."""
    texts = read_texts(Settings)
    return [
        (PREFIX + name.upper(), one.default, " ".join(texts[name].split())) for name, one in _find_settings().items()
    ]
