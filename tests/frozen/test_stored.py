"""A store that an earlier version wrote, with a batch and a calibration half done, is worked on by this one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.faults.provider import Provider, serving
from tests.frozen.asking import Asker
from tests.frozen.stored import IN_FLIGHT, ITEMS, LABELLED, bodies, keyed, load_store, working

BATCHES, CALIBRATIONS = bodies()


def only(ask: Asker, path: str) -> dict[str, Any]:
    [found] = ask("GET", path).json["data"]
    return found


def lines(ask: Asker, path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ask("GET", path).body.splitlines()]


def test_later_code_goes_on_where_the_worker_was_killed(tmp_path: Path) -> None:
    load_store(tmp_path)
    provider = Provider()
    with serving(provider), working(tmp_path, provider) as run, Asker(tmp_path / "store.db") as ask:
        batch, calibration = only(ask, BATCHES), only(ask, CALIBRATIONS)
        places = f"{BATCHES}/{batch['id']}", f"{CALIBRATIONS}/{calibration['id']}"
        done = [one["request_counts"]["completed"] for one in (batch, calibration)]
        assert [one["status"] for one in (batch, calibration)] == ["in_progress"] * 2
        assert all(0 < n < total for n, total in zip(done, (ITEMS, LABELLED), strict=True))
        before = lines(ask, f"{places[0]}/results")
        run.start()
        run.until(lambda: all(ask("GET", place).json["ended_at"] is not None for place in places))
        ended = [ask("GET", place).json for place in places]
        assert [one["status"] for one in ended] == ["completed"] * 2, ended
        assert [one["request_counts"]["completed"] for one in ended] == [ITEMS, LABELLED]
        after = lines(ask, f"{places[0]}/results")
        assert [row["index"] for row in after] == list(range(ITEMS))
        assert [row for row in after if row in before] == before
        assert 0 <= len(provider.requests) - (ITEMS + LABELLED - sum(done)) <= 2 * IN_FLIGHT
        [fit] = ask("GET", f"{places[1]}/fits").json["data"]
        assert fit["fit"]["model"] == "gpt-fine"
        run.until(lambda: run.workflows().keys() == {"SUCCESS"})


def test_a_repeated_submission_is_known_again(tmp_path: Path) -> None:
    load_store(tmp_path)
    with Asker(tmp_path / "store.db") as ask:
        for path, body in bodies().items():
            answer = ask("POST", path, body, headers=keyed(path))
            assert (answer.status, answer.json["id"]) == (202, only(ask, path)["id"])
