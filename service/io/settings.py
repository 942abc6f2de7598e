"""Settings: read once from the environment, at the edge, and handed down as a value."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Generic, Literal, TypeVar, cast, get_args
from urllib.parse import urlsplit

from service.core.report import JudgeMode
from service.core.sensitive import What
from service.errors import Problem, SettingsError

PREFIX = "CALLGRADE_"
READ_ELSEWHERE = frozenset({"CALLGRADE_API_KEY", "CALLGRADE_DEBUG", "CALLGRADE_SERVER"})
"""The command line's: those of a client, and one that is wanted even where the settings are bad."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Format(Generic[T]):
    """How the text of a variable becomes a value. `read` raises ValueError for text that is not `expected`."""

    read: Callable[[str], T]
    expected: str


def _whole(low: int, high: int) -> Format[int]:
    def read(text: str) -> int:
        # int() alone would take " 8000", "8_000" and digits of any script.
        if not (text.isascii() and text.isdigit() and len(text) <= 18 and low <= int(text) <= high):
            raise ValueError
        return int(text)

    return Format(read, f"a whole number from {low} to {high}")


def _host(text: str) -> str:
    if any(map(str.isspace, text)):
        raise ValueError
    return text


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # no home folder is known
        raise ValueError from error


def _path_or_none(text: str) -> Path | None:
    return _path(text) if text else None


def _paths(text: str) -> tuple[Path, ...]:
    return tuple(_path(part) for part in text.split(os.pathsep) if part)


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


_AUTHORITY = re.compile(r"(?:\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::[0-9]{1,5})?")


def _authorities(text: str) -> tuple[str, ...]:
    found = tuple(part.strip().lower() for part in text.split(",") if part.strip())
    if not all(_AUTHORITY.fullmatch(one) for one in found):
        raise ValueError
    return found


_STORES = {"redis": "host", "rediss": "host", "unix": "path"}
"""What a URL must have by its scheme."""


def _store(text: str) -> str:
    parts = urlsplit(text)  # it and `port` raise ValueError for what is no URL
    needed = {"host": parts.hostname, "path": parts.path.strip("/")}
    if text and (parts.port == 0 or parts.fragment or not needed.get(_STORES.get(parts.scheme, ""))):
        raise ValueError
    return text


_DATABASES = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "postgresql+psycopg": "postgresql+psycopg"}
"""The schemes of a database, by what they stand for to SQLAlchemy."""


def _database(text: str) -> str:
    scheme, colon, rest = text.partition("://")
    if not text:
        return ""
    if not colon or scheme not in _DATABASES or not rest.strip("/"):
        raise ValueError
    parts = urlsplit(f"x://{rest}")
    if parts.netloc.count("@") > 1 or parts.port == 0:  # `port` raises ValueError for one that is none
        raise ValueError
    return f"{_DATABASES[scheme]}://{rest}"


ReplyForm = Literal["auto", "schema", "tool", "text"]
FORMS: tuple[ReplyForm, ...] = ("auto", "schema", "tool", "text")


def _form(text: str) -> ReplyForm:
    return FORMS[[*FORMS].index(cast("ReplyForm", text.lower()))]


SENSITIVE: tuple[What, ...] = get_args(What)


def _masks(text: str) -> tuple[What, ...]:
    return tuple([SENSITIVE[[*SENSITIVE].index(cast("What", name))] for name in _names(text.lower())])


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


JUDGE_MODES: tuple[JudgeMode, ...] = get_args(JudgeMode)


def _judges(text: str) -> JudgeMode | None:
    return JUDGE_MODES[[*JUDGE_MODES].index(cast("JudgeMode", text.lower()))] if text else None


LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def _level(text: str) -> str:
    if text.upper() not in LEVELS:
        raise ValueError
    return text.upper()


AUTHORITIES = Format(_authorities, "hosts with or without a port, with commas between them")
FLAG = Format(_flag, "true or false")
JUDGES = Format(_judges, f"one of {', '.join(JUDGE_MODES)}")
HOST = Format(_host, "a host name or an address")
WORD = Format(_host, "text without spaces")
LEVEL = Format(_level, f"one of {', '.join(LEVELS)}")
MASKS = Format(_masks, f"some of {', '.join(SENSITIVE)}, with commas between them")
NAMES = Format(_names, "names with commas between them")
REPLY = Format(_form, f"one of {', '.join(FORMS)}")
PATH = Format(_path, "a path; ~ is the home folder")
DATABASE = Format(_database, "postgresql://user@host:port/name or sqlite:///path")
STORE = Format(_store, "redis://host:port/number, rediss:// for TLS or unix:// for a socket")
NO_PATH = Format(_path_or_none, "a path; ~ is the home folder")
PATHS = Format(_paths, f"paths, with {os.pathsep!r} between them")


def _setting(default: str, form: Format[T], meaning: str, *, secret: bool = False) -> T:
    """A field with its format and its meaning. The default is text too: a row of the table shows what one would set.

    What is secret is in no error and no `repr`.
    """
    metadata = {"default": default, "format": form, "meaning": meaning, "secret": secret}
    return field(default_factory=lambda: form.read(default), metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting. `Settings()` holds the defaults; a field `x_y` is read from the variable `CALLGRADE_X_Y`.

    `Settings()` raises ValueError where `~` means nothing, for want of a home folder; `from_env` names the variable.
    """

    host: str = _setting("127.0.0.1", HOST, "Address to listen on.")
    port: int = _setting("8000", _whole(1, 65_535), "Port to listen on.")
    max_body_bytes: int = _setting("4194304", _whole(1_024, 2**30), "Largest request body, in bytes.")
    max_depth: int = _setting("64", _whole(1, 64), "Deepest nesting of JSON in a body.")
    max_digits: int = _setting("64", _whole(1, 64), "Most digits of an integer in a body.")
    max_string: int = _setting("1000000", _whole(1, 2**30), "Longest string in a body, in characters.")
    max_items: int = _setting("200000", _whole(1, 2**30), "Most JSON values in a body.")
    max_many: int = _setting("1000", _whole(1, 100_000), "Most items in one request to /v1/score/many.")
    max_concurrency: int = _setting(
        "100", _whole(1, 100_000), "Requests worked on at once; more are answered with 503."
    )
    graceful_seconds: int = _setting(
        "20", _whole(0, 3_600), "Time for running requests to end at shutdown, in seconds."
    )
    log_level: str = _setting("INFO", LEVEL, f"Least severe log record written: {', '.join(LEVELS)}.")
    home: Path = _setting("~/.callgrade", PATH, "Folder of the user's own rubrics, fits, cache and store.")  # noqa: RUF009 (it is field())
    rubric_dirs: tuple[Path, ...] = _setting("", PATHS, "More folders to look for rubrics in, separated as in PATH.")
    fit_max_age_days: int = _setting("90", _whole(0, 36_500), "Age beyond which a fit is stale, in days; 0: never.")
    label_queue: Path | None = _setting(  # noqa: RUF009 (likewise)
        "", NO_PATH, "File that items are appended to which a fit leaves to humans; empty: none."
    )
    sandbox_hosts: tuple[str, ...] = _setting(
        "", AUTHORITIES, "Hosts, or host:port, of the sandboxes that requests may name, with commas between them."
    )
    sandbox_allow_private: bool = _setting(
        "false", FLAG, "Whether a sandbox may stand at a private or loopback address."
    )
    sandbox_timeout: int = _setting(
        "10", _whole(1, 600), "Time for a sandbox to make the calls of a trace, in seconds."
    )
    cache_url: str = _setting(
        "",
        STORE,
        "Redis that keeps judgements for several machines; empty keeps them on disk, below the home.",
        secret=True,
    )
    cache_ttl_days: int = _setting("30", _whole(1, 3_650), "How long a judgement is kept, in days.")
    cache_max_bytes: int = _setting(
        "1073741824", _whole(2**20, 2**40), "Largest cache on disk, in bytes; the oldest judgements go first."
    )
    judges: JudgeMode | None = _setting(  # noqa: RUF009 (likewise)
        "",
        JUDGES,
        "How judges are asked where nobody says: off (what only they can say is left out), cached, live or fresh; empty: "
        "live where a model is set, else what only they can say is open.",
    )
    judge_model: str = _setting(
        "", WORD, "The model that judges, as litellm names it (openai/gpt-5-mini); empty: no judge is asked."
    )
    judge_models: tuple[str, ...] = _setting(
        "", NAMES, "Further models that requests may name, with commas between them."
    )
    judge_fallback: str = _setting(
        "", WORD, "Model that is asked where the one that judges cannot be reached; empty: none."
    )
    judge_api_base: str = _setting("", WORD, "Address of an OpenAI-compatible server; empty: the provider's own.")
    judge_api_key: str = _setting(
        "", WORD, "Key for the model; empty: litellm looks in the provider's own variable.", secret=True
    )
    judge_reply: ReplyForm = _setting(  # noqa: RUF009 (likewise)
        "auto", REPLY, "How a model is made to reply with an object: auto, schema, tool or text."
    )
    judge_mask: tuple[What, ...] = _setting(
        "", MASKS, "What no judge is shown, with commas between: secrets, identifiers, contacts; stand-ins are."
    )
    judge_attempts: int = _setting("3", _whole(1, 10), "Requests for one question at most, the first included.")
    judge_deadline: int = _setting("60", _whole(1, 3_600), "Time for one reply of a model, in seconds.")
    judge_total: int = _setting("180", _whole(1, 3_600), "Time in which retries for one question begin, in seconds.")
    judge_connect: int = _setting("5", _whole(1, 3_600), "Time for a connection to a model's provider, in seconds.")
    judge_first_byte: int = _setting(
        "0", _whole(0, 3_600), "Time for a model's reply to begin, in seconds; 0: as long as for all of it."
    )
    judge_max_bytes: int = _setting("8388608", _whole(1_024, 2**30), "Largest reply of a model, unpacked, in bytes.")
    judge_longest_pause: int = _setting(
        "60",
        _whole(1, 3_600),
        "Longest time for which a provider's Retry-After, or a key it refuses, keeps us from asking it again, in seconds.",
    )
    judge_in_flight: int = _setting(
        "64", _whole(1, 10_000), "Most calls under way at once at one provider, over all processes that share a Redis."
    )
    database_url: str = _setting(
        "",
        DATABASE,
        "PostgreSQL that keeps batches and keys for several machines; empty: SQLite, the file `store.db` in the home.",
        secret=True,
    )
    worker: bool = _setting("true", FLAG, "Whether `callgrade serve` starts a worker for batches.")
    batch_in_flight: int = _setting("64", _whole(1, 10_000), "Items of batches under way at once in one worker.")
    batch_chunk: int = _setting("250", _whole(1, 10_000), "Items of a batch that are handed to a worker together.")
    batch_max_items: int = _setting("100000", _whole(1, 10_000_000), "Most items in one batch.")
    batch_max_bytes: int = _setting("1073741824", _whole(1_024, 2**40), "Largest body of a batch, unpacked, in bytes.")
    batch_max_queued: int = _setting(
        "1000000", _whole(1, 10**12), "Items that may wait in all; a batch that does not fit is answered with 429."
    )
    batch_hours: int = _setting("24", _whole(1, 8_760), "Time for a batch to end that names none, in hours.")
    batch_days: int = _setting(
        "30", _whole(1, 3_650), "How long a batch, its items and results are kept after its end, in days."
    )
    webhook_hosts: tuple[str, ...] = _setting(
        "", AUTHORITIES, "Hosts, or host:port, that batches may have notified, with commas between them."
    )
    webhook_allow_private: bool = _setting(
        "false", FLAG, "Whether a webhook may stand at a private or loopback address."
    )
    webhook_secret: str = _setting(
        "", WORD, "What webhooks are signed with; needed where webhook hosts are set.", secret=True
    )
    first_key: bool = _setting(
        "false",
        FLAG,
        "Whether `callgrade serve` makes a key where there is none, and prints it once on standard error.",
    )
    tenant_requests_per_minute: int = _setting(
        "0", _whole(0, 10**9), "Requests of one tenant that each process answers in a minute; 0: as many as come."
    )
    tenant_max_queued: int = _setting(
        "0", _whole(0, 10**12), "Items of batches of one tenant that may wait; 0: as many as there is room for."
    )
    unknown: tuple[str, ...] = ()
    """Variables with our prefix that no setting has: most likely misspelt, so worth a warning."""

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> Settings:
        """The settings that `environ` gives. A variable that is absent or empty leaves the default.

        Raises SettingsError naming every variable that cannot be used and what was expected of it.
        """
        values: dict[str, object] = {}
        problems: list[Problem] = []
        for row in _rows():
            text = environ.get(row.variable) or row.default
            try:
                values[row.name] = row.form.read(text)
            except ValueError:
                told = "what it is set to" if row.secret else repr(text)
                problems.append(Problem(row.variable, f"expected {row.form.expected}, not {told}"))
        if problems:
            raise SettingsError(problems)
        return cls(**values, unknown=_unknown(environ))  # pyright: ignore[reportArgumentType] (each was read by its own format)


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    default: str
    form: Format[object]
    meaning: str
    secret: bool

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


def _rows() -> list[_Row]:
    return [
        _Row(
            name=one.name,
            default=cast("str", one.metadata["default"]),
            form=cast("Format[object]", one.metadata["format"]),
            meaning=cast("str", one.metadata["meaning"]),
            secret=cast("bool", one.metadata["secret"]),
        )
        for one in fields(Settings)
        if one.metadata
    ]


def _unknown(environ: Mapping[str, str]) -> tuple[str, ...]:
    known = READ_ELSEWHERE | {row.variable for row in _rows()}
    return tuple(sorted(name for name in environ if name.startswith(PREFIX) and name not in known))


def settings_table() -> list[tuple[str, str, str]]:
    """(variable, default, meaning) of every setting, in the order of the fields. An empty default is ""."""
    return [(row.variable, row.default, row.meaning) for row in _rows()]
