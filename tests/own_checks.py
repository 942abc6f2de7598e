"""Checks as users write them, for the tests of several rooms."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import callgrade
from service.core.outcome import Finding, Skipped


@dataclass
class Limit:
    most: int = 8


@callgrade.check("short_name", stage="select")
def short_name(step: Any, params: Limit) -> list[Finding]:
    name = step.call.name
    return [] if len(name) <= params.most else [Finding("long_name", name, "/steps/0/call/name")]


@callgrade.check("answered", stage="integrate")
def answered(trace: Any) -> bool | None:
    return None if not trace.steps else trace.answer is not None


@callgrade.check("half", stage="effect", threshold=0.4)
async def half(trace: Any) -> float:
    await asyncio.sleep(0)
    return 0.5


@callgrade.check("polite", stage="integrate")
def polite(trace: Any) -> Any:
    return callgrade.ask("a polite answer", trace.answer, "/answer")


@callgrade.check("by_turn", stage="decide")
def by_turn(turn: int, expectation: Any) -> Any:
    return Skipped("not_captured", "no expectation") if expectation is None else turn == 1


@callgrade.check("broken", stage="effect")
def broken(trace: Any) -> Any:
    raise RuntimeError(f"{trace.answer} is not to my liking")


@callgrade.check("odd", stage="effect")
def odd(trace: Any) -> Any:
    return {"score": 1}
