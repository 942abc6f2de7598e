"""A service with everything that a page can show: lists empty and full, batches done and running, labels, a fit, long texts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from service.engine import Engine
from service.fits.live import LiveFits
from service.registry import Registry
from service.settings import Settings
from service.store.access.keys import Keys
from service.store.database import Database
from service.store.installed_fits import InstalledFits
from service.wiring import build_demo_judging, prepare_database
from tests.api.asgi_caller import LINES, Ask, jsonl
from tests.api.played_client import SMALL, PlayedClient
from tests.api.test_calibrations import items
from tests.api.test_fits import fit, sent
from tests.api.test_labels import body
from tests.api.test_server import Server, serving
from tests.web.site import NOBODY, build_call, build_request, fill

CASES = json.loads((Path(__file__).parents[2] / "service" / "demo" / "cases.json").read_text("utf-8"))
UNBROKEN = "conversation_2026-11-23T04:25:34.123Z_8f7d6a5b4c3d2e1f0a9b8c7d6e5f4a3b2c1d_" + "retried" * 12
PROSE = "The customer writes at length about an order that came late, and about what was promised on the phone. "
LONG_TOOL = "refund_order_and_notify_the_customer_by_every_channel"
TENANT = "shop"


def build_long() -> dict[str, Any]:
    """Twenty calls in three turns with long names and values, in two directions of writing; some are wrong, one is missing."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": PROSE * 12}]
    expected = list[dict[str, Any]]()
    for n in range(20):
        if n % 8 == 0:
            messages.append({"role": "user", "content": f"مرحبا, order {n}: {PROSE}"})
        name = LONG_TOOL if n % 5 == 4 else "get_order"
        args = {"order_id": f"{n:03}", "reference": UNBROKEN, "items": [{"sku": f"A-{n}", "cents": 100 * n}] * 4}
        messages.append(build_call(name, args, n))
        result = {"order": n, "state": "paid", "cents": 5_400 + n, "note": UNBROKEN, "lines": list(range(60))}
        messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": json.dumps(result)})
        changed = {"order_id": f"{n + 1:03}", "reference": f"{UNBROKEN}_again"} if n % 10 == 4 else {}
        expected.append({"tool": name, "args": args | changed})
    messages.append({"role": "assistant", "content": f"All done: {UNBROKEN}. {PROSE}"})
    expected.append({"tool": "close_ticket", "args": {"ticket": UNBROKEN, "because": PROSE}})
    tools = [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
        for name in ("get_order", LONG_TOOL, "close_ticket")
    ]
    return {"trace": {"format": "openai", "tools": tools, "messages": messages}, "expected": {"calls": expected}}


LONG = len(CASES)
"""The position of the long trace in the batch."""


def _fill(client: PlayedClient) -> dict[str, str]:
    """Paths of the pages that name something; and what they show."""
    rows = [(case["title"], case["request"]) for case in CASES]
    rows += [(UNBROKEN, build_long()), *[(f"order-{n}", body(n, right=n % 2 == 0)) for n in range(8)]]
    lines = jsonl(*[{"custom_id": name, **request} for name, request in rows])
    batch = client("POST", "/v1/batches", lines, LINES, name="Refunds, gpt-4.1 with the prompts of last week").json[
        "id"
    ]
    client.work()
    kept = client("POST", "/v1/score", build_long() | {"store": True}).headers["x-callgrade-score-id"]
    for n in range(LONG + 1, LONG + 7):
        for annotator in ("ana", "ben")[: 1 + n % 2]:
            word = "pass" if (n % 4 == 0) == (annotator == "ben") else "fail"
            label = {"item": f"{batch}/{n}", "criterion": "result_groundedness", "label": word, "note": PROSE}
            assert client("POST", "/v1/labels", {**label, "annotator": annotator}).status == 200
    client("POST", "/v1/fits", sent(fit()))
    calibration = client.submit(items(20), name="Answers about orders")["id"]
    return {
        "batch": f"/batches/{batch}",
        "item": f"{batch}/{LONG}",
        "score": f"/scores/{kept}",
        "calibration": f"/calibrations/{calibration}",
    }


@contextmanager
def furnish(home: Path) -> Iterator[tuple[Server, Database, dict[str, str]]]:
    """The service, its store, and paths by name; `key` opens what is full, `empty_key` what has nothing in it."""
    database = prepare_database(Settings(home=home))
    keys, fits = Keys(database), LiveFits([], InstalledFits(database), max_age_days=0)
    _, key = keys.create(name="root", tenant=TENANT, scopes=("admin",))
    _, empty_key = keys.create(name="new", tenant="empty", scopes=("admin",))
    with asyncio.Runner() as runner:
        engine = Engine(Registry(), judging=build_demo_judging(), fits=fits)
        client = PlayedClient(Ask(runner.run), database, engine=engine, settings=SMALL)
        client.key = key
        named = _fill(client)
    running = fill(
        database, [build_request(n) for n in range(8, NOBODY + 2)], over=False, tenant=TENANT, name="Going on"
    )
    with serving(home) as server:
        yield server, database, {**named, "running": f"/batches/{running}", "key": key, "empty_key": empty_key}
    database.close()
