"""Several workers on one PostgreSQL: what a dead or frozen one held is done by the others, once."""

from __future__ import annotations

import signal
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.faults.provider import Provider, serving
from tests.faults.proxy import proxied
from tests.jobs.process import Service, numbers, request, service, with_signal

pytestmark = [pytest.mark.needs_postgres]

IN_FLIGHT = 16
SETTINGS = {"CALLGRADE_BATCH_IN_FLIGHT": str(IN_FLIGHT), "CALLGRADE_BATCH_CHUNK": "20"}


def check(run: Service, batch: str, items: int) -> int:
    """That every item of an ended batch was recorded once; how many calls were made more than once."""
    ended = run.ended(batch)
    assert (ended.status, ended.request_counts.completed) == ("completed", items)
    assert numbers(run.results(batch)) == list(range(items))
    assert set(run.paid()) == set(range(items))
    run.until(run.is_idle)
    return sum(run.paid().values()) - items


def test_a_dead_workers_work_is_taken_over(postgres_url: str, tmp_path: Path) -> None:
    provider = Provider(latency=0.05)
    with serving(provider), service(postgres_url, tmp_path, provider, **SETTINGS, SILENT="3") as run:
        dead, _ = run.start(), run.start()
        run.until(lambda: run.logs().count('"working"') == 2)
        batch = run.submit([request(n) for n in range(200)], size=20)
        run.until(lambda: len(provider.requests) >= 60)
        dead.kill()
        assert check(run, batch, 200) <= IN_FLIGHT
        assert "taking over" in run.log(1)


@pytest.mark.chaos
@pytest.mark.parametrize("moment", ["claim", "record"])
def test_a_worker_frozen_in_a_bad_moment_stops_nobody(own_postgres_url: str, tmp_path: Path, moment: str) -> None:
    provider = Provider(latency=0.2)
    with serving(provider), service(own_postgres_url, tmp_path, provider, **SETTINGS) as run:
        frozen = run.start(odd=f"frozen-at-{moment}")
        batch = run.submit([request(n) for n in range(400)], size=20)
        run.until(lambda: "frozen" in run.log(0))
        run.start()
        run.until(lambda: "taking over" in run.log(1) and len(provider.requests) > 20)
        with_signal(frozen, signal.SIGCONT)
        assert check(run, batch, 400) <= 2 * IN_FLIGHT


def test_a_database_that_goes_away_is_waited_for(postgres_url: str, tmp_path: Path) -> None:
    parts = urlsplit(postgres_url)
    provider = Provider(latency=0.02)
    with proxied(parts.hostname or "", parts.port or 5432) as proxy, serving(provider):
        through = postgres_url.replace(f":{parts.port}/", f":{proxy.port}/")
        assert through != postgres_url
        with service(postgres_url, tmp_path, provider, **SETTINGS) as run:
            run.start(CALLGRADE_DATABASE_URL=through.replace("+psycopg", ""))
            batch = run.submit([request(n) for n in range(200)], size=20)
            for moment in (40, 100):
                run.until(lambda moment=moment: len(provider.requests) >= moment)
                proxy.down()
                run.until(lambda: "no heartbeat" in run.log() or "waiting for the database" in run.log())
                proxy.up()
            assert check(run, batch, 200) <= 2 * IN_FLIGHT


def test_workers_are_replaced_by_those_of_a_later_version_one_after_the_other(
    own_postgres_url: str, tmp_path: Path
) -> None:
    provider = Provider(latency=0.3)
    with serving(provider), service(own_postgres_url, tmp_path, provider, **SETTINGS) as run:
        old = [run.start(), run.start()]
        run.until(lambda: run.logs().count('"working"') == 2)
        batch = run.submit([request(n) for n in range(120)], size=20)
        for number, one in enumerate(old):
            run.until(lambda number=number: len(provider.requests) >= 30 * (number + 1))
            run.start(odd="later")
            run.until(lambda number=number: run.logs().count('"working"') == 3 + number)
            one.terminate()
            one.wait(30)
        assert check(run, batch, 120) == 0  # they were told to stop, and finished what was under way
        second = run.submit([request(n) for n in range(20)], size=20)  # by a service of the version before
        assert run.ended(second).request_counts.completed == 20
        assert "Traceback" not in run.logs()
