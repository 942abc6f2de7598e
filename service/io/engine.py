"""Scoring a request from end to end: the one path that HTTP, command line and library share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING

from pydantic import JsonValue, TypeAdapter

from service.core.budget import MAX_VOTES
from service.core.calibrate import Fit
from service.core.conclude import conclude
from service.core.execution import beside_executed, executed, needs_execution, order, runnable, unexecuted
from service.core.judged import Vote
from service.core.judges import Ask
from service.core.outcome import Errored
from service.core.plan import Plan
from service.core.report import Asking, JudgeMode, Report
from service.core.rubric import Rubric
from service.core.trace import Trace
from service.core.values import shown
from service.errors import InputError, JudgeDownError, SandboxError
from service.io.shelf import Shelf
from service.request import Sandbox, ScoreRequest, planned, read_request, traced

if TYPE_CHECKING:
    from service.io.judging import Judging
    from service.io.label_queue import LabelQueue
    from service.io.outbound import Target
    from service.io.sandbox import Sandboxes
    from service.io.spending import Spending

REPORT: TypeAdapter[Report] = TypeAdapter(Report)


class Engine:
    """Scores requests with the rubrics of a shelf. Safe to share between threads: it keeps nothing of a request."""

    def __init__(
        self,
        shelf: Shelf,
        sandboxes: Sandboxes | None = None,
        judging: Judging | None = None,
        fits: Collection[Fit] = (),
        queue: LabelQueue | None = None,
        judges: JudgeMode | None = None,
    ) -> None:
        """`sandboxes`: those that may be asked to make calls; `judging`: who answers judges' questions. None: nobody.

        `fits`: the calibrations at hand. `queue`: where items go that humans should label.
        `judges`: how judges are asked of requests that do not say; None: live where there is one.
        """
        self.shelf = shelf
        self.sandboxes = sandboxes
        self.judging = judging
        self.fits = fits
        self.queue = queue
        self.judges: JudgeMode | None = judges

    def unfitted(self) -> Engine:
        """The same without fits, so that values are the judges' own, and none is for humans to label."""
        return Engine(self.shelf, self.sandboxes, self.judging, judges=self.judges)

    async def close(self) -> None:
        """Lets go of connections and files; scoring without judges goes on."""
        if self.judging is not None:
            await self.judging.close()
        if self.queue is not None:
            await asyncio.to_thread(self.queue.close)

    def waits(self, request: ScoreRequest) -> bool:
        """Whether anybody must be waited for, so that `answer_async` is needed."""
        return request.sandbox is not None or self.asks_judges(request)

    def score(self, body: JsonValue) -> Report:
        """The report for a request as parsed JSON. InputError where it cannot be scored; nothing else is raised.

        This asks nobody anything: a request with a sandbox or with judges is refused too, and scored by `score_async`.
        """
        return self.answer(read_request(body))

    def answer(self, request: ScoreRequest) -> Report:
        """The report for a request that was read before, as by `score`."""
        if request.sandbox is not None:
            raise InputError.at("/sandbox", "a sandbox is not asked here, where nobody waits for it")
        if self.asks_judges(request):
            raise InputError.at("/judges", "a judge is not asked here, where nobody waits for it; expected off")
        attempted = planned(request, self.shelf.find(request.rubric))
        return beside_executed(conclude(attempted, tags=request.tags, mode=self.mode(request)), attempted)

    async def score_async(self, body: JsonValue, spending: Spending | None = None, *, tenant: str = "") -> Report:
        """As `score`, and waits for the sandbox and the judges. Raises JudgeDownError where the request says so."""
        return await self.answer_async(await asyncio.to_thread(read_request, body), spending, tenant=tenant)

    async def answer_async(
        self, request: ScoreRequest, spending: Spending | None = None, *, tenant: str = ""
    ) -> Report:
        """The report for a request that was read before.

        A fault of the sandbox or of a judge is told in it: besides InputError only JudgeDownError is raised, where
        `on_judge_error` asks for it. `spending`: that of a batch, in place of the request's own. `tenant`: whose request it
        is; what judges said to another is not theirs.
        """
        if not self.waits(request):
            return self.answer(request)
        return await self.finish(request, await self._begun(request), spending, tenant=tenant)

    async def _begun(self, request: ScoreRequest) -> Plan:
        """The plan, made in a thread: a long trace would stall what else goes on."""
        if request.sandbox is None:
            return await asyncio.to_thread(self.plan, request)
        rubric = self.shelf.find(request.rubric)
        trace = await self._executed(await asyncio.to_thread(traced, request), rubric, request.sandbox)
        return await asyncio.to_thread(planned, request, rubric, trace)

    async def finish(
        self,
        request: ScoreRequest,
        attempted: Plan,
        spending: Spending | None = None,
        *,
        tenant: str = "",
        repeat: int = 0,
    ) -> Report:
        """The report of a request with its plan, as `answer_async` gives it: what is left is to ask the judges.

        `repeat`: which time the same is asked, from 0; the cache tells them apart.
        """
        mode = self.mode(request)
        if self.judging is None or mode in ("off", "none"):
            report = conclude(attempted, tags=request.tags, mode=mode)
        else:
            self._admit_models(request, attempted.rubric)
            purse = spending or self.judging.purse(request.budget_usd)
            asked = partial(self.judging.answer, spending=purse, tenant=tenant, repeat=repeat)
            report = await self._judged(request, attempted, self.judging, partial(asked, mode=mode), mode)
        return beside_executed(report, attempted)

    async def _judged(
        self,
        request: ScoreRequest,
        attempted: Plan,
        judging: Judging,
        asked: Callable[..., Awaitable[Mapping[str, tuple[Vote, ...]]]],
        mode: JudgeMode,
    ) -> Report:
        model, trace = request.judge_model, attempted.trace
        admit_votes(attempted.asks)
        votes = await asked(attempted.asks, trace, model=model)
        if request.on_judge_error == "error":
            _raise_fault(votes)
        held = [one.ask for one in attempted.blocked] if mode != "cached" else []
        estimates = await judging.estimates(held, trace, model=model)
        found = conclude(attempted, votes, tags=request.tags, mode=mode, estimates=estimates, fits=tuple(self.fits))
        if self.queue is not None:
            self.queue.offer(request, found, attempted.rubric)
        return found

    def asks_judges(self, request: ScoreRequest) -> bool:
        """Whether judges are asked; InputError as for `mode`."""
        return self.mode(request) not in ("off", "none")

    def mode(self, request: ScoreRequest) -> Asking:
        """How judges are asked; InputError where the request wants one and none is set."""
        said = request.judges or self.judges
        if self.judging is None and said not in (None, "off"):
            raise InputError.at("/judges", "no judge model is set (CALLGRADE_JUDGE_MODEL); expected off")
        if said is not None:
            return said
        return "none" if self.judging is None else "live"

    def admit(self, request: ScoreRequest) -> None:
        """InputError where a request names what is not to be had here: a rubric, judges, a model, a sandbox."""
        rubric = self.shelf.find(request.rubric)
        if self.asks_judges(request):
            self._admit_models(request, rubric)
        if request.sandbox is not None:
            self._admitted(request.sandbox)

    def _admit_models(self, request: ScoreRequest, rubric: Rubric) -> None:
        """InputError for a model that a request names and that is not among those that requests may name."""
        judging = self.judging
        if judging is None:
            return
        if request.judge_model is not None and not judging.may_ask(request.judge_model):
            raise InputError.at(
                "/judge_model", f"{shown(request.judge_model)} is not among the models that are allowed here"
            )
        if isinstance(request.rubric, str):
            return
        for judge in rubric.judges:
            named = [model for model in judge.models if not judging.may_ask(model)]
            if named and self.shelf.judges.get(judge.id) != judge:
                raise InputError.at(
                    "/rubric/judges", f"{judge.id}: {shown(named[0])} is not among the models that are allowed here"
                )

    async def _executed(self, trace: Trace, rubric: Rubric, sandbox: Sandbox) -> Trace:
        target, sandboxes = self._admitted(sandbox)
        if not needs_execution(trace):
            return trace
        steps = await asyncio.to_thread(runnable, trace, rubric, invalid=sandbox.run_invalid)
        try:
            return executed(trace, steps, await sandboxes.ask(target, order(trace, steps)))
        except SandboxError as error:
            return unexecuted(trace, str(error))

    def _admitted(self, sandbox: Sandbox) -> tuple[Target, Sandboxes]:
        if self.sandboxes is None:
            raise InputError.at("/sandbox/url", "no sandbox is allowed here")
        return self.sandboxes.admit(sandbox.url), self.sandboxes

    def plan(self, request: ScoreRequest) -> Plan:
        """What code decides of a request, and what a judge would be asked."""
        return planned(request, self.shelf.find(request.rubric))


def admit_votes(asks: Iterable[Ask]) -> None:
    """InputError where an item asks more of judges than one item may."""
    votes = sum([ask.judge.votes * max(1, len(ask.judge.models)) for ask in asks])
    if votes > MAX_VOTES:
        raise InputError.at("/rubric/criteria", f"{votes} requests to judges; at most {MAX_VOTES} for one item")


def _raise_fault(votes: Mapping[str, tuple[Vote, ...]]) -> None:
    for key, found in votes.items():
        for vote in found:
            if isinstance(vote, Errored):
                raise JudgeDownError(f"a judge gave no verdict on {key}: {vote.cause}: {vote.reason}", vote.cause)


def report_json(report: Report) -> bytes:
    """The report as JSON: the same bytes for the same report, whoever asks."""
    return REPORT.dump_json(report)


@cache
def default_engine() -> Engine:
    """An engine with the packaged rubrics alone."""
    return Engine(Shelf())


def score(request: dict[str, object]) -> Report:
    """The report for a request in the form of POST /v1/score, with the packaged rubrics.

    Raises InputError naming every place that is wrong.
    """
    return default_engine().score(request)  # pyright: ignore[reportArgumentType] (checked on reading)


def plan(request: dict[str, object]) -> Plan:
    """What code decides of a request, and what a judge would be asked."""
    return default_engine().plan(read_request(request))  # pyright: ignore[reportArgumentType] (checked on reading)
