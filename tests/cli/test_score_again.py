"""`callgrade score` with a judge, stopped and started again: the cache has what was answered, and nothing is paid twice."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from service.cli.scoring import score_records
from tests.cli.served import environment
from tests.faults.provider import Provider, serving
from tests.forked import Command, Forked
from tests.jobs.process import order_of, request, until

ITEMS = 100
"""More than are worked on at once."""
IN_FLIGHT = 8
ANSWERED = 40
"""As many requests are answered before the provider falls silent."""
KEPT = 20
"""As many of the answers are in the cache when the run is stopped, at the least."""


class Falling(Provider):
    """A provider that answers so many requests, and then none until it is mended."""

    def __init__(self) -> None:
        super().__init__(now=self._now)
        self.mended = False

    def mend(self) -> None:
        """Answers again; what came before is forgotten."""
        self.mended, self.latency = True, 0.0
        self.requests.clear()

    def _now(self) -> float:
        if len(self.requests) >= ANSWERED and not self.mended:
            self.latency = 3600.0
        return 0.0


def write(folder: Path, count: int, **more: object) -> Path:
    """A file of records, each with a question for a judge."""
    file = folder / "in.jsonl"
    file.write_text("".join(f"{json.dumps(request(n, **more))}\n" for n in range(count)))
    return file


def asked(provider: Provider) -> Counter[int]:
    """How often each record was asked about."""
    return Counter(order_of(one.body) for one in provider.requests)


def count_kept(home: Path) -> int:
    """How many answers the cache keeps."""
    return sum(_count_rows(database) for database in home.glob("**/cache.db"))


def _count_rows(database: Path) -> int:
    with closing(sqlite3.connect(database, timeout=30)) as connection:
        made = connection.execute("SELECT name FROM sqlite_master WHERE name = 'Cache'").fetchall()
        return len(connection.execute("SELECT key FROM Cache").fetchall()) if made else 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_run_that_was_stopped_asks_again_only_for_what_was_under_way(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    out, log = tmp_path / "out.jsonl", tmp_path / "said.log"
    with serving(Falling()) as provider:
        environ = environment(tmp_path, provider, CALLGRADE_JUDGE_IN_FLIGHT=str(IN_FLIGHT))
        args = "score", str(write(tmp_path, ITEMS)), "--format", "ndjson", "--output", str(out)
        command = Command("service.cli", args, environ, log)
        first = Forked(command)
        until(lambda: count_kept(tmp_path) >= KEPT or first.poll() is not None, told=log.read_text)
        first.send_signal(number)
        assert first.wait(60) == code, log.read_text()
        assert "Traceback" not in log.read_text()
        before, kept = asked(provider), count_kept(tmp_path)
        provider.mend()
        assert Forked(command).wait(120) == 0, log.read_text()
    assert len(out.read_text().splitlines()) == ITEMS
    after = asked(provider)
    assert set(before | after) == set(range(ITEMS))
    assert set(after.values()) == {1}
    assert len(after) == ITEMS - kept


@pytest.mark.parametrize("turns", range(5))
def test_ctrl_c_is_raised_once_the_loop_has_stopped(turns: int) -> None:
    """It comes while a record is answered, in the moment between its end and the loop's, or after that."""

    class Engine:
        judging = "a judge that was asked"

        def must_wait(self, _: None) -> bool:
            return True

        async def answer_async(self, _: None) -> None:
            press = signal.raise_signal, signal.SIGINT
            for _ in range(turns):
                press = asyncio.get_running_loop().call_soon, *press
            press[0](*press[1:])
            await asyncio.sleep(0)

        async def flush(self) -> None:
            pass

        close = flush

    class Records(list[object]):
        engine = Engine()

    with pytest.raises(KeyboardInterrupt):
        list(score_records(Records([SimpleNamespace(request=None)] * 2)))


@pytest.mark.parametrize(
    ("fault", "code", "said"), [("401", 4, "unauthorized"), ("refusal", 1, "a judge gave no verdict")]
)
def test_a_judge_that_must_answer_and_does_not_ends_the_run(tmp_path: Path, fault: str, code: int, said: str) -> None:
    file = write(tmp_path, 3, on_judge_error="error")
    with serving(Provider()) as provider:
        environ = environment(tmp_path, provider, CALLGRADE_JUDGE_API_BASE=provider.base(f"fault-{fault}"))
        command = Command("service.cli", ("score", str(file), "--format", "ndjson"), environ, tmp_path / "said.log")
        assert Forked(command).wait(120) == code
    assert said in command.log.read_text()
    assert '"report"' not in command.log.read_text()
