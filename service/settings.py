"""The settings: read once from the environment, at the edge, and passed on as a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from service.core.judging.sensitive_values import SensitiveKind
from service.core.report import JudgeMode
from service.errors import Problem, SettingsError
from service.setting_formats import (
    AUTHORITIES,
    DATABASE,
    DOLLARS,
    FLAG,
    HOST,
    JUDGES,
    LEVEL,
    LEVELS,
    MASKS,
    NAMES,
    PATH,
    PATHS,
    REPLY,
    STORE,
    WORD,
    ReplyForm,
    SettingFormat,
    build_whole,
)

PREFIX = "CALLGRADE_"
READ_ELSEWHERE = frozenset({"CALLGRADE_API_KEY", "CALLGRADE_DEBUG", "CALLGRADE_SERVER"})
"""Variables of the command line: those of the HTTP client, and one that works even if the settings are bad."""

T = TypeVar("T")


class _Setting(NamedTuple):
    """Metadata of a field: its default as the text one would set, its format, and its meaning."""

    default: str
    form: SettingFormat[Any]
    meaning: str
    secret: bool
    """Whether errors and `repr` hide the value."""


def _define_setting(default: str, form: SettingFormat[T], meaning: str, *, secret: bool = False) -> T:
    """Define a field with its format and meaning."""
    metadata = {"setting": _Setting(default, form, meaning, secret)}
    return field(default_factory=lambda: form.read(default), metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings. `Settings()` holds the defaults; the field `x_y` is read from the variable `CALLGRADE_X_Y`.

    `Settings()` raises ValueError if `~` has no meaning because there is no home folder; `from_env` names the variable.
    """

    host: str = _define_setting("127.0.0.1", HOST, "Address to listen on.")
    port: int = _define_setting("8000", build_whole(1, 65_535), "Port to listen on.")
    max_body_bytes: int = _define_setting("4194304", build_whole(1_024, 2**30), "Largest request body, in bytes.")
    max_depth: int = _define_setting("64", build_whole(1, 64), "Deepest nesting of JSON in a body.")
    max_digits: int = _define_setting("64", build_whole(1, 64), "Most digits of an integer in a body.")
    max_string: int = _define_setting("1000000", build_whole(1, 2**30), "Longest string in a body, in characters.")
    max_items: int = _define_setting("200000", build_whole(1, 2**30), "Most JSON values in a body.")
    max_many: int = _define_setting("1000", build_whole(1, 100_000), "Most items in one request to /v1/score/many.")
    max_concurrency: int = _define_setting(
        "200",
        build_whole(1, 100_000),
        "Requests processed at once. A tenant gets as many as it leaves free for others; more are answered with 429.",
    )
    max_streams: int = _define_setting(
        "200",
        build_whole(1, 100_000),
        "Batches sent or fetched at once, and as many watched; shared among tenants in the same way.",
    )
    max_bodies_bytes: int = _define_setting(
        "268435456",
        build_whole(1_024, 2**40),
        "Bytes of request bodies in memory at once; shared among tenants in the same way.",
    )
    max_uploads_bytes: int = _define_setting(
        "4294967296",
        build_whole(1_024, 2**40),
        "Bytes of uploads on the temporary disk at once, at most what is free there; shared among tenants in the same way.",
    )
    allowed_hosts: tuple[str, ...] = _define_setting(
        "",
        AUTHORITIES,
        "Hosts, or host:port, under which the service may be called while it requires no key, besides localhost; "
        "separated by commas.",
    )
    graceful_seconds: int = _define_setting(
        "20", build_whole(0, 3_600), "Time for running requests to end at shutdown, in seconds."
    )
    log_level: str = _define_setting("INFO", LEVEL, f"Least severe log record written: {', '.join(LEVELS)}.")
    home: Path = _define_setting("~/.callgrade", PATH, "Folder of the user's own rubrics, fits, cache and store.")  # noqa: RUF009 (it is field())
    rubric_dirs: tuple[Path, ...] = _define_setting("", PATHS, "More folders with rubrics, separated as in PATH.")
    fit_max_age_days: int = _define_setting(
        "90", build_whole(0, 36_500), "Age beyond which a fit is stale, in days; 0: never."
    )
    store_scores: bool = _define_setting(
        "false", FLAG, "Whether traces of /v1/score are kept with their reports if a request does not say (`store`)."
    )
    session_hours: int = _define_setting(
        "12", build_whole(1, 8_760), "How long a sign-in to the pages lasts, in hours."
    )
    sandbox_hosts: tuple[str, ...] = _define_setting(
        "", AUTHORITIES, "Hosts, or host:port, of the sandboxes that requests may name, separated by commas."
    )
    sandbox_allow_private: bool = _define_setting(
        "false", FLAG, "Whether a sandbox may have a private or loopback address."
    )
    sandbox_timeout: int = _define_setting(
        "10", build_whole(1, 600), "Time for a sandbox to execute the calls of a trace, in seconds."
    )
    cache_url: str = _define_setting(
        "",
        STORE,
        "Redis that stores judgements for several machines; empty: on disk, below the home.",
        secret=True,
    )
    cache_ttl_days: int = _define_setting("30", build_whole(1, 3_650), "How long a judgement is kept, in days.")
    cache_max_bytes: int = _define_setting(
        "1073741824", build_whole(2**20, 2**40), "Largest cache on disk, in bytes; the oldest judgements go first."
    )
    judges: JudgeMode | None = _define_setting(  # noqa: RUF009 (likewise)
        "",
        JUDGES,
        "How judges are asked if nobody says: off (leave out what only they can answer), cached, live or fresh; "
        "empty: live if a model is set, else what only they can answer is open.",
    )
    judge_model: str = _define_setting(
        "", WORD, "Model that judges, as litellm names it (openai/gpt-5-mini); empty: no judge is asked."
    )
    judge_models: tuple[str, ...] = _define_setting(
        "", NAMES, "Further models that requests may name, separated by commas."
    )
    judge_fallback: str = _define_setting("", WORD, "Model to ask if the judging model is unreachable; empty: none.")
    judge_api_base: str = _define_setting(
        "", WORD, "Address of an OpenAI-compatible server; empty: the provider's own."
    )
    judge_api_key: str = _define_setting(
        "", WORD, "Key for the model; empty: litellm reads the provider's own variable.", secret=True
    )
    judge_reply: ReplyForm = _define_setting(  # noqa: RUF009 (likewise)
        "auto", REPLY, "How a model is made to reply with an object: auto, schema, tool or text."
    )
    judge_mask: tuple[SensitiveKind, ...] = _define_setting(
        "", MASKS, "What to hide from judges behind stand-ins, separated by commas: secrets, identifiers, contacts."
    )
    judge_attempts: int = _define_setting(
        "3", build_whole(1, 10), "Most requests for one question, including the first."
    )
    judge_deadline: int = _define_setting("60", build_whole(1, 3_600), "Time for one reply of a model, in seconds.")
    judge_total: int = _define_setting(
        "180", build_whole(1, 3_600), "Time within which retries of one question may start, in seconds."
    )
    judge_connect: int = _define_setting(
        "5", build_whole(1, 3_600), "Time to connect to a model's provider, in seconds."
    )
    judge_first_byte: int = _define_setting(
        "0", build_whole(0, 3_600), "Time for a model's reply to start, in seconds; 0: as long as for the whole reply."
    )
    judge_max_bytes: int = _define_setting(
        "8388608", build_whole(1_024, 2**30), "Largest reply of a model, decompressed, in bytes."
    )
    judge_longest_pause: int = _define_setting(
        "60",
        build_whole(1, 3_600),
        "Longest pause that a provider's Retry-After, or a used-up quota, imposes, in seconds.",
    )
    judge_in_flight: int = _define_setting(
        "64",
        build_whole(1, 10_000),
        "Most concurrent calls to one model, across all processes that share a Redis.",
    )
    request_max_questions: int = _define_setting(
        "1000",
        build_whole(1, 10**6),
        "Most requests to judges for one request or batch item; every vote of every model counts.",
    )
    request_max_usd: float | None = _define_setting(
        "20", DOLLARS, "Most that judges may cost for one request or batch item, in US dollars; 0: no limit."
    )
    database_url: str = _define_setting(
        "",
        DATABASE,
        "PostgreSQL that stores batches and keys for several machines; empty: SQLite, the file `store.db` in the home.",
        secret=True,
    )
    worker: bool = _define_setting("true", FLAG, "Whether `callgrade serve` starts a worker for batches.")
    batch_in_flight: int = _define_setting("64", build_whole(1, 10_000), "Batch items processed at once in one worker.")
    batch_chunk: int = _define_setting(
        "250",
        build_whole(1, 10_000),
        "Batch items given to a worker at a time; four times as many of those up to 4 KiB that ask no judge.",
    )
    batch_max_items: int = _define_setting("100000", build_whole(1, 10_000_000), "Most items in one batch.")
    batch_max_bytes: int = _define_setting(
        "1073741824", build_whole(1_024, 2**40), "Largest body of a batch, decompressed, in bytes."
    )
    batch_max_queued: int = _define_setting(
        "1000000",
        build_whole(1, 10**12),
        "Most items that may wait in total; a batch that does not fit is answered with 429.",
    )
    batch_max_usd: float | None = _define_setting(
        "0",
        DOLLARS,
        "Most that judges may cost for one batch, in US dollars, and the default for batches without a budget; 0: "
        "no limit.",
    )
    batch_max_questions: int = _define_setting(
        "0",
        build_whole(0, 10**12),
        "Most requests to judges for one batch, and the default for batches without a limit; 0: no limit.",
    )
    batch_hours: int = _define_setting(
        "24", build_whole(1, 8_760), "Time for a batch to end if it sets no deadline, in hours."
    )
    batch_days: int = _define_setting(
        "30",
        build_whole(1, 3_650),
        "How long a batch, with its results and labels, is kept after its end, in days; the same for scores and "
        "imported items.",
    )
    webhook_hosts: tuple[str, ...] = _define_setting(
        "", AUTHORITIES, "Hosts, or host:port, that batches may notify, separated by commas."
    )
    webhook_allow_private: bool = _define_setting(
        "false", FLAG, "Whether a webhook may have a private or loopback address."
    )
    webhook_secret: str = _define_setting(
        "", WORD, "Secret that signs webhooks; required if webhook hosts are set.", secret=True
    )
    first_key: bool = _define_setting(
        "false",
        FLAG,
        "Whether `callgrade serve` creates a key if there is none, and prints it once on standard error.",
    )
    audit_days: int = _define_setting("365", build_whole(1, 3_650), "How long the audit log is kept, in days.")
    tenant_requests_per_minute: int = _define_setting(
        "0", build_whole(0, 10**9), "Requests of one tenant that each process answers per minute; 0: no limit."
    )
    tenant_max_concurrency: int = _define_setting(
        "0",
        build_whole(0, 100_000),
        "Requests of one tenant processed at once; 0: as many as it leaves free for others.",
    )
    tenant_max_queued: int = _define_setting(
        "0", build_whole(0, 10**12), "Batch items of one tenant that may wait; 0: as many as there is room for."
    )
    tenant_day_max_questions: int = _define_setting(
        "1000000",
        build_whole(0, 10**12),
        "Requests to judges for one tenant per day (UTC), across all processes; 0: no limit.",
    )
    tenant_day_max_usd: float | None = _define_setting(
        "1000",
        DOLLARS,
        "Most that judges may cost one tenant per day (UTC), across all processes, in US dollars; 0: no limit.",
    )
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
            except ValueError:
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
    return [(PREFIX + name.upper(), one.default, one.meaning) for name, one in _find_settings().items()]
