"""Score a request from end to end: the one path that HTTP, the command line and the library share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from functools import cache
from threading import Lock, Thread
from typing import TYPE_CHECKING
from weakref import finalize

from service.asking.budget.reservations import AskLimits, Spending
from service.core.conclusion.conclude import conclude
from service.core.execution import (
    add_executed_score,
    add_execution,
    build_sandbox_request,
    list_runnable_steps,
    mark_unexecuted,
    needs_execution,
)
from service.core.gates.custom import OWN_CHECKS
from service.core.json.values import format_value
from service.core.judging.fit_warnings import warn_unfitted
from service.core.judging.fits.fit import Fit
from service.core.judging.notes import Vote
from service.core.outcome import Errored
from service.core.plan import Plan
from service.core.report import REPORT, AppliedJudgeMode, JudgeMode, Report, report_json
from service.core.rubric import Rubric
from service.core.trace import Trace
from service.errors import (
    NO_JUDGE_MODEL,
    AllowanceSpentError,
    DaySpentError,
    InputError,
    JudgeDownError,
    SandboxError,
)
from service.fits.live import LiveFits
from service.own_checks import add_checks, name_checks
from service.reading.request import Sandbox, ScoreRequest, check_request, plan_request, read_request_trace
from service.registry import Registry

if TYPE_CHECKING:
    from service.asking.budget.days import Days
    from service.asking.judging import Judging
    from service.outbound.http import Target
    from service.outbound.sandbox import Sandboxes


__all__ = ["REPORT", "Engine", "build_default_engine", "plan", "report_json", "score"]


class Engine:
    """Scores requests with the rubrics of a registry. Safe to share between threads: it keeps no state of a request."""

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
        """Keep what scoring needs.

        `sandboxes`: sandboxes that may run calls; None: none.
        `judging`: answers judges' questions; None: nobody does.
        `fits`: the fits in use.
        `judges`: how judges are asked when a request does not say; None: live if there is a judge.
        `ask_limits`: the most that judges may be asked for one request.
        `days`: counts each tenant's use per day; None: it is not counted.
        """
        self.registry = registry
        self.sandboxes = sandboxes
        self.judging = judging
        self.fits = fits
        self.judges: JudgeMode | None = judges
        self.ask_limits = ask_limits
        self.days = days
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_lock = Lock()

    def copy(self, *, judging: Judging | None = None, fits: Collection[Fit] | None = None) -> Engine:
        """Return the same engine over another judging, or with other fits."""
        return Engine(
            self.registry,
            self.sandboxes,
            judging or self.judging,
            self.fits if fits is None else fits,
            judges=self.judges,
            ask_limits=self.ask_limits,
            days=self.days,
        )

    def list_warnings(self, fits: Collection[Fit] | None = None) -> list[str]:
        """List warnings to print before the first trace: judges whose verdicts stay open because no fit applies.

        `fits`: the fits to look at; default, all that are in use.
        """
        if self.judging is None:
            return []
        judges = [*self.registry.judges.values(), *[judge for rubric in self.registry for judge in rubric.judges]]
        evidence = self.registry.list_evidence()
        targets = self.judging.judges
        fits = self.fits if fits is None else fits
        return list(warn_unfitted(fits, judges, targets.list_models, evidence, route=targets.route))

    async def flush(self) -> None:
        """Wait until the answers of judges are kept where they outlive this process."""
        if self.judging is not None:
            await self.judging.cache.flush()

    async def close(self) -> None:
        """Close connections and files; scoring without judges still works."""
        loop, self._loop = self._loop, None
        if loop is None:
            await self._close_parts()
            return
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._close_parts(), loop))
        self._stop_loop()

    async def _close_parts(self) -> None:
        if self.judging is not None:
            await self.judging.close()
        if self.days is not None:
            await self.days.close()

    def must_wait(self, request: ScoreRequest) -> bool:
        """Whether a sandbox, a judge or a check of the user's own must be waited for, so that `answer_async` is needed."""
        if request.sandbox is not None or self.asks_judges(request):
            return True
        return bool(OWN_CHECKS) and self.registry.find(request.rubric).waits

    def score(self, body: object) -> Report:
        """Score a request given as JSON values. Raises InputError if it cannot be scored, and nothing else.

        This asks neither sandbox nor judge, and refuses a request that needs one; `score_async` scores those.
        """
        return self.answer(check_request(body))

    def answer(self, request: ScoreRequest) -> Report:
        """Score a request that is already validated, as `score` does."""
        if request.sandbox is not None:
            raise InputError.at("/sandbox", "this call does not wait for a sandbox")
        mode = self.choose_mode(request)
        if mode not in ("off", "none"):
            raise InputError.at("/judges", "this call does not wait for a judge; expected off")
        plan = plan_request(request, self.registry.find(request.rubric))
        return add_executed_score(conclude(plan, tags=request.tags, mode=mode), plan)

    async def score_async(self, body: object, *, tenant: str = "") -> Report:
        """Like `score`, and waits for the sandbox and the judges. Raises JudgeDownError if the request asks for it.

        May be awaited in any thread and event loop: an engine asks everything in one loop, in a thread it starts for that,
        so that callers with the same question share one request to the model.
        """
        request = await asyncio.to_thread(check_request, body)
        if not self.must_wait(request):
            return self.answer(request)
        return await asyncio.wrap_future(self._answer_in_loop(request, tenant))

    def score_blocking(self, request: ScoreRequest) -> Report:
        """Score a request that is already validated, as `score_async` does, and block this thread meanwhile."""
        return self._answer_in_loop(request).result() if self.must_wait(request) else self.answer(request)

    def _answer_in_loop(self, request: ScoreRequest, tenant: str = "") -> Future[Report]:
        async def answer() -> Report:
            report = await self.answer_async(request, tenant=tenant)
            await self.flush()  # the program may end with this call
            return report

        return asyncio.run_coroutine_threadsafe(answer(), self._start_loop())

    def _start_loop(self) -> asyncio.AbstractEventLoop:
        with self._loop_lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                Thread(target=_run_loop, args=[self._loop], name="callgrade", daemon=True).start()
                self._stop_loop = finalize(self, self._loop.call_soon_threadsafe, self._loop.stop)
            return self._loop

    async def answer_async(
        self, request: ScoreRequest, spending: Spending | None = None, *, tenant: str = ""
    ) -> Report:
        """Score a request that is already validated, waiting for the sandbox and the judges; always in the same event loop.

        The report tells of a sandbox or judge that fails. Besides InputError this raises only JudgeDownError, if
        `on_judge_error` asks for it, and AllowanceSpentError, if a tenant's day is used up before anything is asked.
        `spending`: the budget of a batch, in place of the request's own. `tenant`: who sent the request; judgements
        made for one tenant are never reused for another.
        """
        if not self.must_wait(request):
            return self.answer(request)
        return await self.finish(request, await self._begin(request), spending, tenant=tenant)

    async def _begin(self, request: ScoreRequest) -> Plan:
        """Build the plan in a thread: a long trace would block the event loop."""
        if request.sandbox is None:
            return await asyncio.to_thread(self.plan, request)
        rubric = self.registry.find(request.rubric)
        trace = await self._execute(await asyncio.to_thread(read_request_trace, request), rubric, request.sandbox)
        return await asyncio.to_thread(plan_request, request, rubric, trace)

    async def finish(
        self,
        request: ScoreRequest,
        plan: Plan,
        spending: Spending | None = None,
        *,
        tenant: str = "",
        repeat: int = 0,
    ) -> Report:
        """Finish a request that has its plan, as `answer_async` does: ask the judges and conclude.

        `repeat`: how many times the same was asked before, from 0; the cache tells the repeats apart.
        """
        mode, judging, model = self.choose_mode(request), self.judging, request.judge_model
        if judging is None or mode in ("off", "none"):
            return add_executed_score(conclude(plan, tags=request.tags, mode=mode), plan)
        self._admit_models(request, plan.rubric)
        self.ask_limits.admit_budget(request.budget_usd)
        self.ask_limits.admit_questions(plan.asks)
        if isinstance(self.fits, LiveFits):
            await self.fits.refresh()
        fits, budget = tuple(self.fits), spending or self.build_spending(request, tenant)
        votes = await judging.answer(
            plan.asks, plan.trace, mode=mode, model=model, spending=budget, tenant=tenant, repeat=repeat
        )
        if request.on_judge_error == "error":
            _raise_fault(votes, budget)
        blocked = [one.ask for one in plan.blocked_asks] if mode != "cached" else []
        estimates = await judging.estimate(blocked, plan.trace, model=model)
        spent = budget.sum_spent() if budget.calls else None
        report = conclude(plan, votes, tags=request.tags, mode=mode, estimates=estimates, fits=fits, spent=spent)
        _raise_spent(budget)
        return add_executed_score(report, plan)

    def build_spending(self, request: ScoreRequest, tenant: str, parent: Spending | None = None) -> Spending:
        """Build the budget of a request: within its own limit, the limit per request, its tenant's day, and `parent`.

        `parent`: the budget of the batch that the request is part of.
        """
        limits = [usd for usd in (request.budget_usd, self.ask_limits.max_usd) if usd is not None]
        within = [] if self.days is None else [self.days.get_spending(tenant)]
        return Spending(min(limits, default=None), within=[*within, *([] if parent is None else [parent])])

    def asks_judges(self, request: ScoreRequest) -> bool:
        """Whether judges are asked; raises InputError as `choose_mode` does."""
        return self.choose_mode(request) not in ("off", "none")

    def choose_mode(self, request: ScoreRequest) -> AppliedJudgeMode:
        """Choose how judges are asked; InputError if the request wants one and no judge model is set."""
        mode = request.judges or self.judges
        if self.judging is None and mode not in (None, "off"):
            raise InputError.at("/judges", NO_JUDGE_MODEL)
        if mode is not None:
            return mode
        return "none" if self.judging is None else "live"

    def admit(self, request: ScoreRequest) -> None:
        """Raise InputError if a request names a rubric, judges, a model or a sandbox that is not available here."""
        rubric = self.registry.find(request.rubric)
        if self.asks_judges(request):
            self._admit_models(request, rubric)
            self.ask_limits.admit_budget(request.budget_usd)
        if request.sandbox is not None:
            self._admit_sandbox(request.sandbox)

    def _admit_models(self, request: ScoreRequest, rubric: Rubric) -> None:
        """Raise InputError for a model that a request names and that requests may not name."""
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
            refused = [model for model in judge.models if not judging.may_ask(model)]
            if refused and self.registry.judges.get(judge.id) != judge:
                raise InputError.at(
                    "/rubric/judges",
                    f"{judge.id}: {format_value(refused[0])} is not among the models that are allowed here",
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
        """Build the plan: what code decides of a request, and what judges would be asked."""
        return plan_request(request, self.registry.find(request.rubric))


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


def _raise_spent(spending: Spending) -> None:
    """Raise AllowanceSpentError if a tenant's day is used up and no question of the request was answered."""
    spent = next((fault for fault in spending.faults if isinstance(fault, DaySpentError)), None)
    if spent is not None and not spending.calls and not spending.cached:
        raise AllowanceSpentError(spent.reason, retry_after=spent.retry_after or 1.0)


def _raise_fault(votes: Mapping[str, tuple[Vote, ...]], spending: Spending) -> None:
    wait = max([fault.retry_after or 1.0 for fault in spending.faults], default=1.0)
    for key, judge_votes in votes.items():
        for vote in judge_votes:
            if isinstance(vote, Errored):
                why = f"a judge gave no verdict on {key}: {vote.cause}: {vote.reason}"
                raise JudgeDownError(why, vote.cause, retry_after=wait)


@cache
def build_default_engine() -> Engine:
    """Return an engine with only the packaged rubrics."""
    return Engine(Registry())


def score(request: dict[str, object], *, checks: Sequence[Callable[..., object]] = ()) -> Report:
    """Score a request in the form of POST /v1/score, with the packaged rubrics.

    `checks`: functions under `@callgrade.check`, each a criterion besides those of the rubric. Raises InputError naming every
    place that is wrong.
    """
    engine, read = build_default_engine(), check_request(request)
    if checks:
        rubric = add_checks(engine.registry.find(read.rubric), name_checks(checks))
        read = read.model_copy(update={"rubric": rubric})
    return engine.answer(read)


def plan(request: dict[str, object]) -> Plan:
    """Build the plan of a request: what code decides, and what judges would be asked."""
    return build_default_engine().plan(check_request(request))
