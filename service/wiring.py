"""The composition root: everything that is built from settings, in one place for every front door."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from pydantic import JsonValue

from service import heap
from service.asking.budget.reservations import AskLimits
from service.core.judging.fits.fit import build_route
from service.core.report import STAND_IN
from service.engine import Engine
from service.errors import NO_JUDGE_MODEL, BusyError, SettingsError
from service.fits.files import AgingFits, read_fits
from service.fits.live import LiveFits
from service.own_checks import load_installed
from service.reading.strict_json import Limits
from service.registry import Registry
from service.settings import Settings

if TYPE_CHECKING:
    from service.asking.budget.days import Days
    from service.asking.cache.guard import Cache, GuardedCache
    from service.asking.judging import Judging
    from service.asking.limits import ProviderGate
    from service.asking.model import LiteLLM
    from service.core.judging.fits.fit import Fit
    from service.outbound.sandbox import Sandboxes
    from service.outbound.webhooks import Webhooks
    from service.store.database import Database

WARM_UP_REQUEST: JsonValue = {
    "judges": "off",
    "trace": {"format": "callgrade", "events": [{"user": "?"}, {"call": {"name": "a"}}, {"assistant": "1"}]},
    "expected": {"calls": [{"tool": "a", "args": {"n": 1}}]},
}
"""A small request that loads the code that most requests need."""


def build_engine(
    settings: Settings, database: Database | None = None, *, make_gate: Callable[[str], ProviderGate] | None = None
) -> Engine:
    """Build the engine with the packaged and the user's rubrics, and the user's fits.

    `database`: where each tenant's use per day is counted; None: nowhere. `make_gate`: as in `build_judging`.

    RubricError or SettingsError if one of them cannot be used.
    """
    load_installed()
    fits = build_fits(settings, database)
    judging = build_judging(settings, make_gate=make_gate)
    if judging is None and settings.judges not in (None, "off"):
        raise SettingsError.at("CALLGRADE_JUDGES", NO_JUDGE_MODEL)
    return Engine(
        Registry(list_rubric_folders(settings)),
        build_sandboxes(settings),
        judging,
        fits,
        judges=settings.judges,
        ask_limits=AskLimits(settings.request_max_questions, settings.request_max_usd),
        days=None if database is None else build_days(settings, database),
    )


def build_fits(settings: Settings, database: Database | None) -> Collection[Fit]:
    """Build the user's fits; with a database also those installed over HTTP, as soon as they are installed."""
    files, days = read_fits([settings.home / "fits"]), settings.fit_max_age_days
    if database is None:
        return AgingFits(files, max_age_days=days)
    from service.store.installed_fits import InstalledFits  # noqa: PLC0415 (likewise)

    return LiveFits(files, InstalledFits(database), max_age_days=days)


def build_days(settings: Settings, database: Database) -> Days:
    """Build the counter that bounds each tenant's use per day."""
    from service.asking.budget.days import Days  # noqa: PLC0415 (load SQLAlchemy only when needed)
    from service.store.access.usage import Caps, UsageStore  # noqa: PLC0415

    caps = Caps(settings.tenant_day_max_questions or None, settings.tenant_day_max_usd)
    return Days(UsageStore(database), caps)


def build_judging(
    settings: Settings, *, cache: Cache | None = None, make_gate: Callable[[str], ProviderGate] | None = None
) -> Judging | None:
    """Build what answers judges' questions; None without a model and a judge in Python.

    `cache`, `make_gate`: in place of the cache that is set, and of gates of this process.
    """
    from service.asking.own_judges import OWN_JUDGES  # noqa: PLC0415 (likewise)

    if not settings.judge_model and not OWN_JUDGES:
        return None
    from service.asking.calls import ModelCaller, RetryPolicy  # noqa: PLC0415 (likewise)
    from service.asking.judging import Judges, Judging  # noqa: PLC0415
    from service.asking.local_servers import HOSTED_DEADLINE_S, choose_deadline  # noqa: PLC0415

    model, attempt_s = build_model(settings), choose_deadline(settings.judge_api_base, settings.judge_deadline)
    total_s = 3.0 * (settings.judge_deadline or HOSTED_DEADLINE_S)
    policy = RetryPolicy(settings.judge_attempts, attempt_s, total_s)
    find_gate: Callable[[str], ProviderGate] = make_gate or (lambda _: build_gate(settings))
    caller = ModelCaller(model, find_gate, pricing=model.worst_usd, policy=policy)
    judges = Judges(
        settings.judge_model,
        frozenset(settings.judge_models),
        settings.judge_api_base or None,
        route=choose_route(settings),
        form=settings.judge_reply,
    )
    cache = cache or build_cache(settings)
    return Judging(caller, cache, judges, pricing=model.worst_usd, observers=caller.observers)


def build_gate(settings: Settings) -> ProviderGate:
    """Build what limits the requests to a model."""
    from service.asking.limits import ConcurrencyLimit, ProviderGate  # noqa: PLC0415 (likewise)
    from service.asking.local_servers import FIRST_IN_FLIGHT, is_local  # noqa: PLC0415

    start = FIRST_IN_FLIGHT if is_local(settings.judge_api_base) else 16
    return ProviderGate(concurrency=ConcurrencyLimit(start=start, most=settings.judge_in_flight))


def choose_route(settings: Settings) -> str:
    """Return the route to the models, which fits are bound to."""
    return build_route(api_base=settings.judge_api_base or None, reply=settings.judge_reply)


def build_model(settings: Settings) -> LiteLLM:
    """Build what talks to the models of one key and one address."""
    from service.asking.local_servers import choose_deadline, is_local  # noqa: PLC0415 (likewise)
    from service.asking.model import LiteLLM  # noqa: PLC0415
    from service.outbound.exchanges import ExchangeBounds  # noqa: PLC0415

    return LiteLLM(
        api_base=settings.judge_api_base or None,
        api_key=settings.judge_api_key or None,
        reply=settings.judge_reply,
        bounds=ExchangeBounds(choose_deadline(settings.judge_api_base, settings.judge_deadline)),
        local=is_local(settings.judge_api_base),
    )


async def load_judges(settings: Settings) -> None:
    """Load the model client, which takes seconds, before a question needs it. Nothing is sent.

    Raises JudgeError if it cannot be loaded.
    """
    from service.core.judging.prompts import Prompt  # noqa: PLC0415 (likewise)

    await build_model(settings).worst_usd(Prompt(settings.judge_model, (), {}, max_tokens=1))


async def load_rubrics(engine: Engine) -> None:
    """Score a small trace to load what scoring needs."""

    def load() -> None:
        engine.score(WARM_UP_REQUEST)
        heap.freeze_loaded()

    await _run_in_daemon(load)


async def _run_in_daemon(work: Callable[[], None]) -> None:
    """Run work in a daemon thread, so that the process can exit before it ends, and wait for it."""
    ended: Future[None] = Future()
    ended.set_running_or_notify_cancel()

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 (raised again in the awaiting task)
            ended.set_exception(error)
        else:
            ended.set_result(None)

    Thread(target=run, name="loading", daemon=True).start()
    await asyncio.wrap_future(ended)


def build_demo_judging() -> Judging:
    """Build the judging of a demonstration: no model and no cache."""
    from service.asking.cache.guard import Cache  # noqa: PLC0415 (likewise)
    from service.asking.demo_judge import DemoJudge  # noqa: PLC0415
    from service.asking.judging import Judges, Judging  # noqa: PLC0415 (likewise)

    return Judging(DemoJudge(), Cache(), Judges(STAND_IN))


def build_sandboxes(settings: Settings) -> Sandboxes | None:
    """Build the sandboxes that requests may name; None if no host is allowed."""
    if not settings.sandbox_hosts:
        return None
    from service.outbound.sandbox import Sandboxes  # noqa: PLC0415 (load TLS and HTTP only when needed)

    return Sandboxes(
        settings.sandbox_hosts,
        allow_private=settings.sandbox_allow_private,
        timeout=settings.sandbox_timeout,
        limits=build_limits(settings),
    )


def build_webhooks(settings: Settings) -> Webhooks | None:
    """Build the receivers that batches may notify; None if no host is allowed.

    SettingsError if hosts are set without a secret, or with an unusable one.
    """
    if not settings.webhook_hosts:
        return None
    from service.outbound.webhooks import Webhooks  # noqa: PLC0415 (likewise)

    if not settings.webhook_secret:
        raise SettingsError.at("CALLGRADE_WEBHOOK_SECRET", "expected a secret, because CALLGRADE_WEBHOOK_HOSTS is set")
    try:
        return Webhooks(
            settings.webhook_hosts, secret=settings.webhook_secret, allow_private=settings.webhook_allow_private
        )
    except ValueError as error:
        raise SettingsError.at("CALLGRADE_WEBHOOK_SECRET", str(error)) from None


def build_cache(settings: Settings) -> GuardedCache:
    """Build the cache of judgements: Redis if one is set, else the folder `cache` in the home folder.

    Opens nothing yet. SettingsError for a URL that Redis's client refuses.
    """
    ttl = settings.cache_ttl_days * 86_400.0
    if not settings.cache_url:
        from service.asking.cache.disk import DiskCache  # noqa: PLC0415 (likewise)

        return DiskCache(settings.home / "cache", ttl=ttl, max_bytes=settings.cache_max_bytes)
    from service.asking.cache.shared import RedisCache  # noqa: PLC0415 (likewise)

    try:
        return RedisCache(settings.cache_url, ttl=ttl)
    except ValueError:
        raise SettingsError.at("CALLGRADE_CACHE_URL", "expected a URL that redis-py accepts") from None


def build_database(settings: Settings) -> Database:
    """Build the database: the one that is set, else the file `store.db` in the home folder, created if missing.

    Connects to nothing yet. SettingsError if the file cannot be created.
    """
    from service.store.database import open_database  # noqa: PLC0415 (likewise)

    if settings.database_url:
        return open_database(settings.database_url)
    file = settings.home / "store.db"
    try:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not file.exists():
            file.touch(mode=0o600)  # private, even if the home folder is not
    except OSError as error:
        raise SettingsError.at("CALLGRADE_HOME", f"{file} cannot be created: {error.strerror}") from None
    return open_database(f"sqlite:///{file}")


def prepare_database(settings: Settings, *, give_up: float = 10.0) -> Database:
    """Build the database and migrate its tables.

    SettingsError if it cannot be reached for `give_up` seconds, or if a later version has migrated it.
    """
    from sqlalchemy.exc import DBAPIError  # noqa: PLC0415 (likewise)

    from service.logs.quiet import hush  # noqa: PLC0415 (likewise)
    from service.store.database import insist  # noqa: PLC0415 (likewise)

    hush(["alembic"])  # it logs every start
    database = build_database(settings)
    try:
        insist(database.migrate, give_up=give_up)
    except (BusyError, DBAPIError) as error:
        variable = "CALLGRADE_DATABASE_URL" if settings.database_url else "CALLGRADE_HOME"
        place = settings.home / "store.db" if not settings.database_url else "the database"
        raise SettingsError.at(variable, f"{place} cannot be used: {_describe_error(error)}") from None
    return database


def _describe_error(error: Exception) -> str:
    """Return the message of the database or its driver, in one line; drivers quote no password that they recognise."""
    from service.store.database import DAMAGED, is_damaged  # noqa: PLC0415 (likewise)

    cause = getattr(error.__cause__ if isinstance(error, BusyError) else error, "orig", None) or error
    text = " ".join(str(cause).split())[:300]
    return f"{text}. {DAMAGED}" if is_damaged(cause) else text


def list_rubric_folders(settings: Settings) -> tuple[Path, ...]:
    """List the user's rubric folders: `rubrics` in the home folder first, then those the settings name."""
    home_rubrics = settings.home / "rubrics"
    return (*([home_rubrics] if home_rubrics.is_dir() else []), *settings.rubric_dirs)


def build_limits(settings: Settings) -> Limits:
    """Build the limits of a request body, or of one record of a file."""
    return Limits(max_bytes=settings.max_body_bytes)
