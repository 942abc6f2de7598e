"""Scoring a request from end to end: the one path that HTTP, command line and library share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING

from pydantic import JsonValue

from service.asking.budget.ask_limits import AskLimits
from service.asking.budget.reservations import Spending
from service.core.conclusion.conclude import conclude, list_next_asks
from service.core.conclusion.report_json import REPORT, report_json
from service.core.execution import (
    add_executed_score,
    add_execution,
    build_sandbox_request,
    list_runnable_steps,
    mark_unexecuted,
    needs_execution,
)
from service.core.json.values import format_value
from service.core.judging.fit_warnings import warn_unfitted
from service.core.judging.fits import Fit
from service.core.judging.judges import JudgeCheck
from service.core.judging.notes import Vote
from service.core.outcome import Errored
from service.core.plan import Plan
from service.core.report import AppliedJudgeMode, JudgeMode, Report
from service.core.rubric import Rubric
from service.core.trace import Trace
from service.errors import AllowanceSpentError, DaySpentError, InputError, JudgeDownError, SandboxError
from service.fits.live import LiveFits
from service.registry import Registry
from service.request import Sandbox, ScoreRequest, plan_request, read_request, read_request_trace

if TYPE_CHECKING:
    from service.asking.budget.days import Days
    from service.asking.judging import Judging
    from service.outbound.http import Target
    from service.outbound.sandbox import Sandboxes


__all__ = ["REPORT", "Engine", "build_default_engine", "plan", "report_json", "score"]


class Engine:
    """Scores requests with the rubrics of a registry. Safe to share between threads: it keeps nothing of a request."""

    def __init__(  # noqa: PLR0913 (each by name)
        self,
        registry: Registry,
        sandboxes: Sandboxes | None = None,
        judging: Judging | None = None,
        fits: Collection[Fit] = (),
        judges: JudgeMode | None = None,
        *,
        ask_limits: AskLimits = AskLimits(),  # noqa: B008 (frozen)
        days: Days | None = None,
    ) -> None:
        """`sandboxes`: those that may be asked to make calls; `judging`: who answers judges' questions. None: nobody.

        `fits`: the calibrations at hand.
        `judges`: how judges are asked of requests that do not say; None: live where there is one.
        `ask_limits`: what judges may be asked for one request; `days`: where it is counted for tenants. None: nowhere.
        """
        self.registry = registry
        self.sandboxes = sandboxes
        self.judging = judging
        self.fits = fits
        self.judges: JudgeMode | None = judges
        self.ask_limits = ask_limits
        self.days = days

    def copy_without_fits(self) -> Engine:
        """The same without fits, so that values are the judges' own, and none is for humans to label."""
        return Engine(
            self.registry, self.sandboxes, self.judging, judges=self.judges, ask_limits=self.ask_limits, days=self.days
        )

    def list_warnings(self, fits: Collection[Fit] | None = None) -> list[str]:
        """What is to be said before the first trace: whose verdicts stay open for want of a fit that applies.

        `fits`: those to look at; default, all that are at hand.
        """
        if self.judging is None:
            return []
        judges = [*self.registry.judges.values(), *[judge for rubric in self.registry for judge in rubric.judges]]
        shown = _list_evidence(self.registry)
        who = self.judging.judges
        return list(warn_unfitted(self.fits if fits is None else fits, judges, who.models, shown, route=who.route))

    async def close(self) -> None:
        """Lets go of connections and files; scoring without judges goes on."""
        if self.judging is not None:
            await self.judging.close()
        if self.days is not None:
            await self.days.close()

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
        mode = self.mode(request)
        if mode not in ("off", "none"):
            raise InputError.at("/judges", "a judge is not asked here, where nobody waits for it; expected off")
        attempted = plan_request(request, self.registry.find(request.rubric))
        return add_executed_score(conclude(attempted, tags=request.tags, mode=mode), attempted)

    async def score_async(self, body: JsonValue, spending: Spending | None = None, *, tenant: str = "") -> Report:
        """As `score`, and waits for the sandbox and the judges. Raises JudgeDownError where the request says so."""
        return await self.answer_async(await asyncio.to_thread(read_request, body), spending, tenant=tenant)

    async def answer_async(
        self, request: ScoreRequest, spending: Spending | None = None, *, tenant: str = "", repeat: int = 0
    ) -> Report:
        """The report for a request that was read before.

        A fault of the sandbox or of a judge is told in it: besides InputError only JudgeDownError is raised, where
        `on_judge_error` asks for it, and AllowanceSpentError, where a tenant's day is used up before anything is asked.
        `spending`: that of a batch, in place of the request's own. `tenant`: whose request it is; what judges said to another
        is not theirs. `repeat`: as for `finish`.
        """
        if not self.waits(request):
            return self.answer(request)
        return await self.finish(request, await self._begin(request), spending, tenant=tenant, repeat=repeat)

    async def _begin(self, request: ScoreRequest) -> Plan:
        """The plan, made in a thread: a long trace would stall what else goes on."""
        if request.sandbox is None:
            return await asyncio.to_thread(self.plan, request)
        rubric = self.registry.find(request.rubric)
        trace = await self._execute(await asyncio.to_thread(read_request_trace, request), rubric, request.sandbox)
        return await asyncio.to_thread(plan_request, request, rubric, trace)

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
            self.ask_limits.admit_budget(request.budget_usd)
            budget = spending or self.build_spending(request, tenant)
            asked = partial(self.judging.answer, spending=budget, tenant=tenant, repeat=repeat)
            report = await self._judge(request, attempted, self.judging, partial(asked, mode=mode), mode)
            _raise_spent(budget)
        return add_executed_score(report, attempted)

    def build_spending(self, request: ScoreRequest, tenant: str, whole: Spending | None = None) -> Spending:
        """What a request may spend: no more than it says, than one may, than its tenant has left of today, and than `whole`.

        `whole`: that of what it is a part of.
        """
        most = [usd for usd in (request.budget_usd, self.ask_limits.usd) if usd is not None]
        within = [] if self.days is None else [self.days.of(tenant)]
        return Spending(min(most, default=None), within=[*within, *([] if whole is None else [whole])])

    async def _judge(
        self,
        request: ScoreRequest,
        attempted: Plan,
        judging: Judging,
        asked: Callable[..., Awaitable[Mapping[str, tuple[Vote, ...]]]],
        mode: JudgeMode,
    ) -> Report:
        model, trace = request.judge_model, attempted.trace
        if isinstance(self.fits, LiveFits):
            await self.fits.refresh()
        self.ask_limits.admit_questions([one for ask in attempted.asks for one in ask.chain])
        fits = tuple(self.fits)
        votes = dict(await asked(attempted.asks, trace, model=model))
        while further := list_next_asks(attempted, votes, tags=request.tags, fits=fits):
            votes |= await asked(further, trace, model=model)
        if request.on_judge_error == "error":
            _raise_fault(votes)
        held = [one.ask for one in attempted.blocked_asks] if mode != "cached" else []
        estimates = await judging.estimate(held, trace, model=model)
        return conclude(attempted, votes, tags=request.tags, mode=mode, estimates=estimates, fits=fits)

    def asks_judges(self, request: ScoreRequest) -> bool:
        """Whether judges are asked; InputError as for `mode`."""
        return self.mode(request) not in ("off", "none")

    def mode(self, request: ScoreRequest) -> AppliedJudgeMode:
        """How judges are asked; InputError where the request wants one and none is set."""
        said = request.judges or self.judges
        if self.judging is None and said not in (None, "off"):
            raise InputError.at("/judges", "no judge model is set (CALLGRADE_JUDGE_MODEL); expected off")
        if said is not None:
            return said
        return "none" if self.judging is None else "live"

    def admit(self, request: ScoreRequest) -> None:
        """InputError where a request names what is not to be had here: a rubric, judges, a model, a sandbox."""
        rubric = self.registry.find(request.rubric)
        if self.asks_judges(request):
            self._admit_models(request, rubric)
            self.ask_limits.admit_budget(request.budget_usd)
        if request.sandbox is not None:
            self._admit_sandbox(request.sandbox)

    def _admit_models(self, request: ScoreRequest, rubric: Rubric) -> None:
        """InputError for a model that a request names and that is not among those that requests may name."""
        judging = self.judging
        if judging is None:
            return
        if request.judge_model is not None and not judging.may_ask(request.judge_model):
            raise InputError.at(
                "/judge_model", f"{format_value(request.judge_model)} is not among the models that are allowed here"
            )
        if isinstance(request.rubric, str):
            return
        for judge in rubric.judges:
            named = [model for model in judge.models if not judging.may_ask(model)]
            if named and self.registry.judges.get(judge.id) != judge:
                raise InputError.at(
                    "/rubric/judges",
                    f"{judge.id}: {format_value(named[0])} is not among the models that are allowed here",
                )

    async def _execute(self, trace: Trace, rubric: Rubric, sandbox: Sandbox) -> Trace:
        target, sandboxes = self._admit_sandbox(sandbox)
        if not needs_execution(trace):
            return trace
        steps = await asyncio.to_thread(list_runnable_steps, trace, rubric, invalid=sandbox.run_invalid)
        try:
            return add_execution(trace, steps, await sandboxes.ask(target, build_sandbox_request(trace, steps)))
        except SandboxError as error:
            return mark_unexecuted(trace, str(error))

    def _admit_sandbox(self, sandbox: Sandbox) -> tuple[Target, Sandboxes]:
        if self.sandboxes is None:
            raise InputError.at("/sandbox/url", "no sandbox is allowed here")
        return self.sandboxes.admit(sandbox.url), self.sandboxes

    def plan(self, request: ScoreRequest) -> Plan:
        """What code decides of a request, and what a judge would be asked."""
        return plan_request(request, self.registry.find(request.rubric))


def _raise_spent(spending: Spending) -> None:
    """AllowanceSpentError where a tenant's day is used up, and not one answer came for the request."""
    spent = next((fault for fault in spending.faults if isinstance(fault, DaySpentError)), None)
    if spent is not None and not spending.calls and not spending.cached:
        raise AllowanceSpentError(spent.reason, retry_after=spent.retry_after or 1.0)


def _raise_fault(votes: Mapping[str, tuple[Vote, ...]]) -> None:
    for key, found in votes.items():
        for vote in found:
            if isinstance(vote, Errored):
                raise JudgeDownError(f"a judge gave no verdict on {key}: {vote.cause}: {vote.reason}", vote.cause)


@cache
def build_default_engine() -> Engine:
    """An engine with the packaged rubrics alone."""
    return Engine(Registry())


def score(request: dict[str, object]) -> Report:
    """The report for a request in the form of POST /v1/score, with the packaged rubrics.

    Raises InputError naming every place that is wrong.
    """
    return build_default_engine().score(request)  # pyright: ignore[reportArgumentType] (checked on reading)


def plan(request: dict[str, object]) -> Plan:
    """What code decides of a request, and what a judge would be asked."""
    return build_default_engine().plan(read_request(request))  # pyright: ignore[reportArgumentType] (checked on reading)


def _list_evidence(rubrics: Iterable[Rubric]) -> dict[tuple[str, str], set[str]]:
    """How code looks before each judge (its id) on each criterion, in these rubrics; empty where it does not."""
    found: dict[tuple[str, str], set[str]] = {}
    for rubric in rubrics:
        for criterion in rubric.criteria:
            if isinstance(criterion.check, JudgeCheck):
                found.setdefault((criterion.check.judge, criterion.id), set()).add(criterion.check.evidence_digest)
    return found
