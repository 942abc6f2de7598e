"""Texts that try to become more than text, and a scored trace in which one of them is everything that somebody wrote."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from service.engine import Engine
from service.registry import Registry
from service.web.trace.build import ScoredTrace
from service.web.trace.stored import read_sent
from service.wiring import build_demo_judging
from tests.tables import read_yaml

HERE = Path(__file__).parents[1] / "data" / "web" / "hostile.yaml"

MEANT = "zqx"
"""What stands in the trace for the text."""

SAID = "nothing speaks against it"
"""What the stand-in judge says."""

ARGUMENTS = f'{{"{MEANT}": "{MEANT}", "id": "4711"}}'

REQUEST: dict[str, Any] = {
    "trace": {"format": "openai", "id": MEANT, "tools": [{"type": "function",
     "function": {"name": MEANT, "description": MEANT, "parameters": {}}}],
     "messages": [{"role": "system", "content": f"{MEANT} system"},
     {"role": "user", "content": f"{MEANT} 4711 {MEANT}"},
     {"role": "assistant", "content": MEANT, "tool_calls": [{"id": "c1", "type": "function",
     "function": {"name": MEANT, "arguments": ARGUMENTS}}]},
     {"role": "tool", "tool_call_id": "c1", "content": f'{{"{MEANT}": "{MEANT}", "price_cents": 540000}}'},
     {"role": "assistant", "content": f"{MEANT}: the price is $54.00."}]},
    "expected": {"calls": [{"tool": MEANT, "reason": MEANT,
     "args": {MEANT: {"kind": "contains", "value": f"{MEANT} more"}, "other": MEANT}},
     {"tool": f"{MEANT}2", "args": {MEANT: MEANT}}], "answer": {"kind": "contains", "value": f"{MEANT}!"}},
    "tags": {MEANT: MEANT},
    "judges": "live",
}  # fmt: skip


def list_hostile() -> list[tuple[str, str]]:
    """Name and text of each."""
    return [
        (one["name"], one["text"] * one.get("repeat", 1) + ("\ud800" if one.get("surrogate") else ""))
        for one in read_yaml(HERE)
    ]


UNEXPECTED: dict[str, Any] = {name: value for name, value in REQUEST.items() if name != "expected"}
"""The same with nothing expected, so that a judge is asked."""


@cache
def _score() -> tuple[ScoredTrace, ...]:
    async def score() -> list[Any]:
        engine = Engine(Registry(), judging=build_demo_judging())
        reports = [await engine.score_async(one) for one in (REQUEST, UNEXPECTED)]
        await engine.close()
        return reports

    reports = asyncio.run(score())
    return tuple(
        ScoredTrace(report, *read_sent(sent), name=MEANT)
        for report, sent in zip(reports, (REQUEST, UNEXPECTED), strict=True)
    )


def build_hostile(text: str) -> list[ScoredTrace]:
    """Scored traces with the text wherever somebody wrote something: one held against an expectation, one judged."""
    return [ScoredTrace(*[_put(one, text) for one in scored]) for scored in _score()]


def _put(value: Any, text: str) -> Any:
    if isinstance(value, str):
        return value.replace(MEANT, text).replace(SAID, text)
    if isinstance(value, BaseModel):
        held = {name: _put(getattr(value, name), text) for name in type(value).model_fields}
        return type(value).model_construct(value.model_fields_set, **held)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{one.name: _put(getattr(value, one.name), text) for one in fields(value) if one.init})
    if isinstance(value, Mapping):
        return {_put(key, text): _put(item, text) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, tuple):
        return tuple(_put(item, text) for item in cast("tuple[Any, ...]", value))
    return [_put(item, text) for item in cast("list[Any]", value)] if isinstance(value, list) else value
