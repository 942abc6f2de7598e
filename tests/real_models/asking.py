"""Put questions with known answers to a real model, on the road that scoring takes, and count what becomes of its replies."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import yaml

from service import plan
from service.asking.budget.reservations import Spending
from service.asking.cache.guard import Cache
from service.asking.calls import ModelCaller, RetryPolicy
from service.asking.judging import Judges, Judging
from service.asking.model import LiteLLM
from service.core.judging.grades import CANNOT_TELL
from service.core.judging.judges import Ask
from service.core.judging.notes import JudgeReply
from service.core.judging.prompts import Completion, Prompt
from service.core.judging.questions import Question, build_question
from service.core.judging.replies import check_quotes
from service.core.trace import Trace
from service.errors import JudgeError
from service.outbound.exchanges import ExchangeBounds

ROOT = Path(__file__).parents[2]
DEADLINE_S = 600.0


class Item(NamedTuple):
    """A question with its right answer."""

    name: str
    ask: Ask
    trace: Trace
    passes: bool


def list_items(*, whole: bool) -> list[Item]:
    """List 20 questions, two for each judge; or 60."""
    own = [_read_own(n, row) for n, row in enumerate(_read_questions())]
    sides: dict[tuple[str, bool], list[Item]] = {}
    for line in (ROOT / "calibration" / "labels" / "starter.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        item = _read_starter(row)
        if item is not None:
            sides.setdefault((row["criterion"], item.passes), []).append(item)
    in_turn = [item for row in zip_longest(*sides.values()) for item in row if item is not None]
    return own + in_turn[: (60 if whole else 20) - len(own)]


def _read_questions() -> list[Any]:
    return yaml.safe_load((ROOT / "tests" / "data" / "real_models" / "questions.yaml").read_text("utf-8"))


def _read_own(number: int, row: Mapping[str, Any]) -> Item:
    events = row.get("events") or [{"user": "?"}, {"assistant": "!"}]
    names = sorted({event["call"]["name"] for event in events if "call" in event})
    tools = [{"name": name, "description": name.replace("_", " ").capitalize()} for name in names]
    criterion = {"id": "it", "stage": "integrate", "check": {"kind": "judge", "judge": row["judge"]}}
    trace = {"format": "callgrade", "tools": tools, "events": events}
    made = plan({"rubric": {"id": "r", "criteria": [criterion]}, "trace": trace})
    ask = made.asks[-1]._replace(words=row.get("words", ""), value=row.get("value"))
    return Item(f"{row['judge']}/{number}", ask, made.trace, row["passes"])


def _read_starter(row: Mapping[str, Any]) -> Item | None:
    """Read an item as `four_step` asks it, with the evidence that code gathers; None where code decides it."""
    made = plan({"rubric": "four_step", "trace": row["trace"]})
    asks = [ask for ask in made.asks if ask.criterion == row["criterion"]]
    return Item(row["id"], asks[-1], made.trace, bool(row["labels"][0]["label"])) if asks else None


class _Recorder:
    """Keeps what a model replied."""

    def __init__(self, calls: ModelCaller) -> None:
        self._calls = calls
        self.completions: list[Completion] = []

    async def complete(self, prompt: Prompt, spending: Spending, tenant: str) -> Completion:
        """Return the reply of the model, and keep it."""
        reply = await self._calls.complete(prompt, spending, tenant)
        self.completions.append(reply)
        return reply


@dataclass(slots=True)
class Count:
    """What became of the replies. A reply is valid if it could be used as it was, or after one repair."""

    asked: int = 0
    as_it_was: int = 0
    repaired: int = 0
    undecided: int = 0
    agree: int = 0
    quotes: int = 0
    quotes_found: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    @property
    def valid(self) -> int:
        """How many questions got a reply that could be used."""
        return self.as_it_was + self.repaired


async def ask_all(items: list[Item], *, model: str, base: str, form: Any, verbose: bool) -> Count:
    """Ask a model each question, one after the other."""
    count = Count()
    client = LiteLLM(api_base=base, api_key=None, reply=form, bounds=ExchangeBounds(DEADLINE_S))
    calls = ModelCaller(client, policy=RetryPolicy(attempt_s=DEADLINE_S, total_s=2 * DEADLINE_S))
    recorder = _Recorder(calls)
    judging = Judging(recorder, Cache(), Judges(model, api_base=base))
    for item in items:
        recorder.completions.clear()
        start = monotonic()
        votes = await judging.answer([item.ask], item.trace, mode="live", spending=Spending())
        seconds = monotonic() - start
        [vote] = next(iter(votes.values()))
        _count(count, item, vote, recorder.completions, seconds)
        if verbose:
            _show(item, vote, recorder.completions, seconds)
    await judging.close()
    return count


def _count(count: Count, item: Item, vote: object, completions: list[Completion], seconds: float) -> None:
    count.asked += 1
    count.seconds += seconds
    question = build_question(item.ask, item.trace)
    for one in completions:
        quotes = list(_iter_quotes(one.text))
        count.quotes += len(quotes)
        count.quotes_found += sum(_is_quoted(quote, question) for quote in quotes)
        count.tokens_in += one.usage.tokens_in or 0
        count.tokens_out += one.usage.tokens_out or 0
    if not isinstance(vote, JudgeReply):
        count.faults.append(f"{item.name}: {getattr(vote, 'cause', '')}: {getattr(vote, 'reason', '')}")
        return
    if len(completions) > 1:
        count.repaired += 1
    else:
        count.as_it_was += 1
    judge, said = item.ask.judge, vote.judgement
    passed = {end.value >= judge.threshold for end in (said.low, said.high)}
    count.undecided += said.label == CANNOT_TELL or len(passed) > 1
    count.agree += passed == {item.passes}


def _iter_quotes(text: str) -> Iterator[str]:
    """Yield each quote of a reply, however it is formed."""
    try:
        body = json.loads(text)
    except ValueError:
        return
    for one in [body, *(body.get("claims") or [])] if isinstance(body, dict) else []:
        if isinstance(one, dict):
            listed = [one.get("quote"), *(one.get("quotes") or [])]
            yield from (quote for quote in listed if isinstance(quote, str) and quote)


def _show(item: Item, vote: object, completions: list[Completion], seconds: float) -> None:
    said = vote.judgement.label if isinstance(vote, JudgeReply) else f"{vote}"[:300]
    want = "passes" if item.passes else "fails"
    print(f"{item.name}: {len(completions)} replies, {seconds:.0f} s, {said} (it {want})", flush=True)
    for one in completions:
        print(f"    {one.text[:600]!r}", flush=True)


def _is_quoted(quote: str, question: Question) -> bool:
    try:
        check_quotes([quote], question)
    except JudgeError:
        return False
    return True
