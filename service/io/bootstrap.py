"""The composition root: what is built from settings, once, for every front door."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from service.core.report import STAND_IN
from service.errors import BusyError, SettingsError
from service.io.engine import Engine
from service.io.fits import AgingFits, read_fits
from service.io.jsonbody import Limits
from service.io.settings import Settings
from service.io.shelf import Shelf

if TYPE_CHECKING:
    from service.io.cache_guard import GuardedCache
    from service.io.exchanges import Bounds
    from service.io.judging import Judging
    from service.io.label_queue import LabelQueue
    from service.io.sandbox import Sandboxes
    from service.io.shared_limits import SharedLimits
    from service.io.store.database import Database
    from service.io.webhooks import Webhooks


def engine_of(settings: Settings) -> Engine:
    """The engine with the packaged rubrics and the user's, and the user's fits.

    RubricError or SettingsError where one of them cannot be used.
    """
    fits = AgingFits(read_fits([settings.home / "fits"]), max_age_days=settings.fit_max_age_days)
    judging = judging_of(settings)
    if judging is None and settings.judges not in (None, "off"):
        raise SettingsError.at("CALLGRADE_JUDGES", "expected off, or CALLGRADE_JUDGE_MODEL set too")
    return Engine(
        Shelf(rubric_folders(settings)),
        sandboxes_of(settings),
        judging,
        fits,
        label_queue_of(settings),
        judges=settings.judges,
    )


def label_queue_of(settings: Settings) -> LabelQueue | None:
    """Where items go that humans should label; None where no file is set."""
    if settings.label_queue is None:
        return None
    from service.io.label_queue import LabelQueue  # noqa: PLC0415 (likewise)

    return LabelQueue(settings.label_queue)


def judging_of(settings: Settings, environ: Mapping[str, str] | None = None) -> Judging | None:
    """Who answers judges' questions; None where no model is set. `environ` tells what else is a secret: default, all of it."""
    if not settings.judge_model:
        return None
    from service.io.calls import Caller, Policy  # noqa: PLC0415 (likewise)
    from service.io.judging import Judges, Judging  # noqa: PLC0415
    from service.io.lanes import Lane, Lanes  # noqa: PLC0415
    from service.io.limits import Slots  # noqa: PLC0415
    from service.io.model import LiteLLM, disconnect  # noqa: PLC0415
    from service.io.redaction import Redactor  # noqa: PLC0415

    redact = Redactor.from_env(os.environ if environ is None else environ, [settings.judge_api_key])
    model = LiteLLM(
        api_base=settings.judge_api_base or None,
        api_key=settings.judge_api_key or None,
        reply=settings.judge_reply,
        redact=redact,
        bounds=_bounds(settings),
        longest_pause=settings.judge_longest_pause,
    )
    policy = Policy(settings.judge_attempts, settings.judge_deadline, settings.judge_total)
    cache, shared = cache_of(settings), shared_limits_of(settings)
    lanes = Lanes(
        make=lambda clock: Lane(
            clock, slots=Slots(most=settings.judge_in_flight), longest_pause=settings.judge_longest_pause
        ),
        shared=shared.at if shared else None,
    )
    caller = Caller(model, lanes, account=model.account, pricing=model.worst_usd, policy=policy)
    judges = Judges(
        settings.judge_model,
        frozenset(settings.judge_models),
        settings.judge_fallback or None,
        settings.judge_api_base or None,
        mask=frozenset(settings.judge_mask),
    )

    async def closing() -> None:
        if shared:
            await shared.close()
        await disconnect()

    return Judging(caller, cache, judges, pricing=model.worst_usd, closing=closing)


def _bounds(settings: Settings) -> Bounds:
    """What one exchange with a model's provider may take."""
    from service.io.exchanges import Bounds  # noqa: PLC0415 (likewise)
    from service.io.times import Times  # noqa: PLC0415 (likewise)

    first_byte = settings.judge_first_byte or None
    times = Times.within(settings.judge_deadline, connect=settings.judge_connect, first_byte=first_byte)
    return Bounds(times, settings.judge_max_bytes)


def standing_in() -> Judging:
    """The judging of a demonstration: no model and no cache."""
    from service.io.judging import Judges, Judging, Uncached  # noqa: PLC0415 (likewise)
    from service.io.standin import StandIn  # noqa: PLC0415

    return Judging(StandIn(), Uncached(), Judges(STAND_IN))


def sandboxes_of(settings: Settings) -> Sandboxes | None:
    """The sandboxes that requests may name; None where no host is allowed."""
    if not settings.sandbox_hosts:
        return None
    from service.io.sandbox import Sandboxes  # noqa: PLC0415 (TLS and HTTP are not loaded for nothing)

    return Sandboxes(
        settings.sandbox_hosts,
        allow_private=settings.sandbox_allow_private,
        timeout=settings.sandbox_timeout,
        limits=limits_of(settings),
    )


def webhooks_of(settings: Settings) -> Webhooks | None:
    """The receivers that batches may notify; None where no host is allowed.

    SettingsError where hosts are set without a secret, or with one that cannot be used.
    """
    if not settings.webhook_hosts:
        return None
    from service.io.webhooks import Webhooks  # noqa: PLC0415 (likewise)

    if not settings.webhook_secret:
        raise SettingsError.at("CALLGRADE_WEBHOOK_SECRET", "expected a secret, for CALLGRADE_WEBHOOK_HOSTS is set")
    try:
        return Webhooks(
            settings.webhook_hosts, secret=settings.webhook_secret, allow_private=settings.webhook_allow_private
        )
    except ValueError as error:
        raise SettingsError.at("CALLGRADE_WEBHOOK_SECRET", str(error)) from None


def cache_of(settings: Settings) -> GuardedCache:
    """The cache of judgements: Redis where one is set, else the folder `cache` in the home folder.

    Nothing is opened yet. SettingsError for a URL that Redis's client does not take.
    """
    ttl = settings.cache_ttl_days * 86_400.0
    if not settings.cache_url:
        from service.io.disk_cache import DiskCache  # noqa: PLC0415 (likewise)

        return DiskCache(settings.home / "cache", ttl=ttl, max_bytes=settings.cache_max_bytes)
    from service.io.shared_cache import RedisCache  # noqa: PLC0415 (likewise)

    try:
        return RedisCache(settings.cache_url, ttl=ttl)
    except ValueError:
        raise SettingsError.at("CALLGRADE_CACHE_URL", "expected a URL that redis-py takes") from None


def shared_limits_of(settings: Settings) -> SharedLimits | None:
    """What processes that share a Redis know together of providers; None where none is set."""
    if not settings.cache_url:
        return None
    from service.io.shared_limits import SharedLimits  # noqa: PLC0415 (likewise)

    return SharedLimits(settings.cache_url, most=settings.judge_in_flight)


def database_of(settings: Settings) -> Database:
    """The database: the one that is set, else the file `store.db` in the home folder, which is made where it is missing.

    Nothing is connected to yet. SettingsError where the file cannot be made.
    """
    from service.io.store.database import open_database  # noqa: PLC0415 (likewise)

    if settings.database_url:
        return open_database(settings.database_url)
    file = settings.home / "store.db"
    try:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists():
            file.touch(mode=0o600)  # what waits in it is nobody else's to read, wherever the home folder is
    except OSError as error:
        raise SettingsError.at("CALLGRADE_HOME", f"{file} cannot be made: {error.strerror}") from None
    return open_database(f"sqlite:///{file}")


def prepared(settings: Settings, *, give_up: float = 10.0) -> Database:
    """The database with its tables up to date.

    SettingsError where it cannot be reached for `give_up` seconds, or where a later version has changed it.
    """
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 (likewise)

    from service.io.quiet import hush  # noqa: PLC0415 (likewise)
    from service.io.store.database import insisting  # noqa: PLC0415 (likewise)

    hush(["alembic"])  # it would tell of every start
    database = database_of(settings)
    try:
        insisting(database.migrate, give_up=give_up)
    except (BusyError, DBAPIError) as error:
        named = "CALLGRADE_DATABASE_URL" if settings.database_url else "CALLGRADE_HOME"
        raise SettingsError.at(named, f"the database cannot be used: {_said(error)}") from None
    return database


def _said(error: Exception) -> str:
    """What the database, or whoever could not reach it, said last: a driver quotes no password that it could read as one."""
    cause = getattr(error.__cause__ if isinstance(error, BusyError) else error, "orig", None) or error
    return " ".join(str(cause).split())[:300]


def rubric_folders(settings: Settings) -> tuple[Path, ...]:
    """The user's folders of rubrics: `rubrics` in their home folder first, then those named."""
    own = settings.home / "rubrics"
    return (*([own] if own.is_dir() else []), *settings.rubric_dirs)


def limits_of(settings: Settings) -> Limits:
    """The limits of a request body, or of one record of a file."""
    return Limits(
        max_bytes=settings.max_body_bytes,
        max_depth=settings.max_depth,
        max_digits=settings.max_digits,
        max_string=settings.max_string,
        max_items=settings.max_items,
    )
