"""Try out the configured judge."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from textwrap import wrap
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic import JsonValue

from service.asking.budget.reservations import Spending
from service.asking.cache.guard import Cache
from service.asking.judging import Judging
from service.asking.local_servers import is_local
from service.asking.own_judges import find_own_judges
from service.cli import options
from service.cli.app import build_command_group
from service.cli.exits import ExitCode
from service.cli.options import read_settings
from service.cli.progress import ProgressLine
from service.cli.screen import build_console, print_line, print_table
from service.core.judging.notes import JudgeReply, Vote
from service.core.judging.prompts import Usage
from service.core.judging.questions import build_question
from service.core.money import NOTHING, Cost
from service.engine import plan
from service.errors import NO_JUDGE_MODEL, SETUP_CAUSES, SettingsError
from service.own_checks import load_plugins
from service.reading.packaged_files import read_explanations
from service.wiring import build_judging, load_judges

REACHABLE_S = 2.0
"""Seconds in which a server accepts a connection, or counts as not there."""

QUESTIONS_PER_1000 = 3_300
"""Questions of four_step about 1,000 traces like those of `callgrade demo`, without an expectation."""

SLOW_S = 30.0
"""Seconds for a question from which on the advice speaks of speed."""

CUT_SHARE = 0.5
"""The share of our estimate of a prompt's tokens below which a server has read a part of the prompt only."""

UNASKED = SETUP_CAUSES | {"provider_error", "timeout", "quota_exhausted"}
"""Causes that say nothing about the replies of a model: it gave none."""


class CheckQuestion(NamedTuple):
    """A question with a known answer: which judge is asked about which trace, and whether it passes."""

    judge: str
    passes: bool
    trace: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """What became of one question."""

    judge: str
    vote: Vote
    right: bool
    requests: int
    usage: Usage
    seconds: float
    prompt_tokens: int
    """Those of the first prompt, as we estimate them."""

    def describe(self) -> str:
        """Render the answer as a row."""
        vote = self.vote
        said = vote.judgement.label if isinstance(vote, JudgeReply) else getattr(vote, "cause", "no answer")
        how = "right" if self.right else "wrong" if isinstance(vote, JudgeReply) else "unusable"
        again = f", {self.requests} requests" if self.requests > 1 else ""
        return f"{self.judge:<22} {how:<8} {said[:20]:<20} {self.seconds:6.1f} s{again}"


commands = build_command_group("judge", __doc__ or "")


@commands.command("check")
def check(plugin: options.Plugin = None, quiet: options.Quiet = False) -> int:
    """Ask the configured judge three questions with known answers, and say what to change.

    Tells within two seconds whether its server can be reached. Nothing is cached. The exit code is 0 if all replies can be used
    and are right, 2 if not, and 4 if the judge cannot be asked. Without a model, only judges in Python are asked.
    """
    load_plugins(plugin)
    settings = read_settings()
    judging, model, where = build_judging(settings, cache=Cache()), settings.judge_model, settings.judge_api_base
    known = [
        CheckQuestion(**one) for one in json.loads((files("service") / "demo" / "judge_check.json").read_text("utf-8"))
    ]
    own = dict.fromkeys(name for one in known for name in find_own_judges(one.judge, one.judge))
    questions = [one for one in known if model or find_own_judges(one.judge, one.judge)]
    if judging is None or not questions:
        raise SettingsError.at("CALLGRADE_JUDGE_MODEL", NO_JUDGE_MODEL)
    with asyncio.Runner() as loop:
        at = "" if model in ("", *own) else f" at {where or 'its provider'}"
        print_line(", ".join(filter(None, {model + at: None} | own)))
        if at and where:
            print_line(f"reachable in {1_000 * loop.run(_connect(where)):.0f} ms")
        loop.run(load_judges(settings))
        answers: list[CheckAnswer] = []
        print_line(f"   {'criterion':<22} {'answer':<8} {'label given':<20} {'time':>8}")
        with ProgressLine("question", len(questions), quiet=quiet) as line:
            for number, question in enumerate(questions, start=1):
                answers.append(loop.run(_ask(judging, question)))
                line.update(number)
                with line.hide():
                    print_line(f"{number}. {answers[-1].describe()}")
        loop.run(judging.close())
    print_line("")
    print_table(("", ""), _sum_up(answers))
    print_line("")
    causes = [getattr(one.vote, "cause", "") for one in answers if not isinstance(one.vote, JudgeReply)]
    advices = list(_iter_advice(answers, causes, own=not model))
    for advice in advices or ["Nothing to change. Next: callgrade score FILE"]:
        for text in wrap(advice, build_console(reading=True).width, initial_indent="- ", subsequent_indent="  "):
            print_line(text)
    if len(causes) == len(answers) and set(causes) <= UNASKED:
        return ExitCode.CONFIG
    return ExitCode.PASSED if all(one.right for one in answers) else ExitCode.FAILED


async def _connect(address: str) -> float:
    """Return the seconds until the server accepts a connection. SettingsError if it does not in time."""
    parts = urlsplit(address)
    start = time.monotonic()
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        async with asyncio.timeout(REACHABLE_S):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, ValueError) as error:
        why = "no answer in 2 s" if isinstance(error, TimeoutError) else "it accepts no connection"
        do = "Start the server (ollama serve, llama-server, vllm serve, LM Studio: Developer), or correct the address"
        do = do if is_local(address) else "Correct the address, or check the network"
        raise SettingsError.at("CALLGRADE_JUDGE_API_BASE", f"{address} cannot be reached: {why}. {do}") from None
    writer.close()
    return time.monotonic() - start


async def _ask(judging: Judging, question: CheckQuestion) -> CheckAnswer:
    judge = question.judge
    criterion = {"id": judge, "stage": "integrate", "check": {"kind": "judge", "judge": judge}}
    made = plan({"rubric": {"id": "check", "criteria": [criterion]}, "trace": question.trace})
    [ask] = made.asks[-1:]
    requests: list[Usage | None] = []

    def note(model: str, seconds: float, usage: Usage | None) -> None:  # noqa: ARG001
        requests.append(usage)

    judging.observers.append(note)
    start = time.monotonic()
    votes = await judging.answer([ask], made.trace, mode="fresh", spending=Spending())
    seconds = time.monotonic() - start
    judging.observers.remove(note)
    [vote] = next(iter(votes.values()))
    usages = [one or Usage() for one in requests]
    usage = vote.usage if isinstance(vote, JudgeReply) else (usages or [Usage()])[-1]
    said = [vote.judgement.low, vote.judgement.high] if isinstance(vote, JudgeReply) else []
    right = {end.value >= ask.judge.threshold for end in said} == {question.passes}
    return CheckAnswer(judge, vote, right, len(requests), usage, seconds, build_question(ask, made.trace).size)


def _sum_up(answers: Sequence[CheckAnswer]) -> Iterator[tuple[str, str]]:
    valid = [one for one in answers if isinstance(one.vote, JudgeReply)]
    yield "valid replies", f"{len(valid)} of {len(answers)}, {sum(one.requests <= 1 for one in valid)} at the first try"
    yield "right answers", f"{sum(one.right for one in answers)} of {len(answers)}"
    known = [one.usage for one in valid if one.usage.tokens_in and one.usage.tokens_out]
    if not known:
        return
    each = [(usage.tokens_in, usage.tokens_out, usage.tokens_cached) for usage in known]
    counts = [sum(count or 0 for count in column) for column in zip(*each, strict=True)]
    cached = f" ({counts[2]:,} cached)" if counts[2] else ""
    yield "tokens", f"{counts[0]:,} in{cached}, {counts[1]:,} out"
    cost = sum([Cost.of(usage.cost_usd) for usage in known], NOTHING)
    share = QUESTIONS_PER_1000 / len(known)
    hours = share * sum(one.seconds for one in valid) / 3_600
    money = "price unknown" if cost.unpriced else f"{Cost(cost.usd * share)} for prompts and replies of this length"
    yield "1,000 traces", f"{QUESTIONS_PER_1000:,} questions, {hours:.1f} h one after the other, {money}"
    yield "", f"{share * counts[0] / 1e6:.1f} M tokens in, {share * counts[1] / 1e6:.1f} M out"


def _iter_advice(answers: Sequence[CheckAnswer], causes: Sequence[str], *, own: bool) -> Iterator[str]:
    """Say what to change. `causes`: why questions got no reply that can be used; `own`: only judges in Python were asked."""
    if causes:
        fault = next(one.vote for one in answers if not isinstance(one.vote, JudgeReply))
        why, share = str(getattr(fault, "reason", "")).rstrip("."), f"{len(causes)} of {len(answers)}"
        if own:
            yield f"{share} answers cannot be used: {why}."
            return
        if set(causes) <= UNASKED:
            yield from (f"Not asked: {why}.", read_explanations()["causes"][causes[0]][1].replace("`", ""))
            return
        yield f"{share} replies cannot be used: {why}."
        yield "Use a larger model, or try CALLGRADE_JUDGE_REPLY=schema, tool or text. What is not answered stays undecided."
    cut = [one for one in answers if one.usage.tokens_in and one.usage.tokens_in < CUT_SHARE * one.prompt_tokens]
    if cut:
        yield (
            f"The server reports {cut[0].usage.tokens_in} tokens for a prompt of some {cut[0].prompt_tokens}: it may read a part "
            "only. Give it more context, such as OLLAMA_CONTEXT_LENGTH=16384 or llama-server -c 16384."
        )
    wrong = [one.judge for one in answers if isinstance(one.vote, JudgeReply) and not one.right]
    if wrong:
        yield f"Wrong on a plain question: {', '.join(wrong)}. Use a larger model, or calibrate this one before you trust it."
    seconds = sum(one.seconds for one in answers) / len(answers)
    if seconds > SLOW_S:
        yield f"{seconds:.0f} s for a question is slow: use a GPU, a smaller model, or one that thinks less."
