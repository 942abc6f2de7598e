"""Render a summary as sections of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from service.cli.rendering.console import pluralize
from service.reporting.document import Section, Table
from service.reporting.numbers import render_number, render_share
from service.reporting.summary import Group, Rates, Summary
from service.reporting.summary.calls import CallRates
from service.reporting.summary.classes import ClassScore
from service.reporting.summary.gate import AssertionResult, Gate
from service.reporting.summary.labelled import RateEstimate, ToLabel
from service.reporting.summary.usage import ToolUsage
from service.stats.rates import Estimate

MAX_ROWS = 50
"""How many rows of one table are shown; JSON has all of them."""


def build_summary_sections(summary: Summary) -> Iterator[Section]:
    """Build the sections of a summary, the gate first because it matters most."""
    if summary.gate is not None:
        yield _build_gate(summary.gate)
    yield _build_overview(summary)
    yield from _build_rate_tables(summary.rates)
    yield from _build_corrected(summary)
    if summary.calls is not None and summary.calls.calls:
        yield _build_calls(summary.calls)
    yield _build_decisions(summary)
    yield from _build_tools(summary)
    yield from _build_repeats(summary)
    yield from _build_slices(summary)
    yield from _build_composition(summary)
    if summary.warnings:
        yield Section("Warnings", lines=tuple(warning.message for warning in summary.warnings))


def _build_corrected(summary: Summary) -> Iterator[Section]:
    """Build the section of rates corrected by labels."""
    head = ("pass rate by labels", "labels", "others", "as scored", "humans alone", "corrected", "to halve it")
    rows = [
        (
            f"{one.criterion} of {'calls' if one.unit == 'step' else 'reports'}",
            str(one.labelled),
            str(one.unlabelled),
            "-" if one.naive is None else f"{one.naive:.3f}",
            _render_estimate(one.humans),
            _render_estimate(one.corrected),
            "-" if one.more_labels is None else f"{one.more_labels} more",
        )
        for one in summary.corrected
    ]
    lines = [
        f"{one.criterion}: label next, at random: {', '.join([_render_item(item) for item in one.label_next])}"
        for one in summary.corrected
        if one.label_next
    ]
    lines += [f"{one.criterion}: {one.unmatched} labels match no report" for one in summary.corrected if one.unmatched]
    if rows:
        yield Section("Corrected by labels", (Table(head, tuple(rows)),), tuple(lines))


def _render_estimate(rate: RateEstimate | None) -> str:
    return "-" if rate is None else f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]"


def _render_item(item: ToLabel) -> str:
    return item.trace_id if item.step is None else f"{item.trace_id} call {item.step}"


def _build_gate(gate: Gate) -> Section:
    verdict = "passed" if gate.passed else "undecided" if gate.undecided else "failed"
    broke = f" at {gate.broke_at}" if gate.broke_at else ""
    rows = tuple(
        (one.assertion, one.status, _render_value(one), str(one.cases), _render_assertion(one)) for one in gate.results
    )
    return Section(f"Gate: {verdict}{broke}", (Table(("assertion", "status", "value", "cases", "why"), rows),))


def _render_value(one: AssertionResult) -> str:
    """Render the compared value: one number, or a range if something is open."""
    return render_number(one.low) if one.low == one.high else f"{render_number(one.low)} to {render_number(one.high)}"


def _render_assertion(one: AssertionResult) -> str:
    broke = f" (failed at {one.broke_at})" if one.broke_at else ""
    return f"{one.message}{broke}" or "-"


def _build_overview(summary: Summary) -> Section:
    rates = summary.rates
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in rates.verdicts.items())
    rubrics = ", ".join(f"{ref.id}@{ref.version}" for ref in summary.rubrics)
    rest = {"not finished": summary.unfinished, "could not be scored": summary.unscored}
    more = "".join([f"; {count} {words}" for words, count in rest.items() if count])
    lines = (
        f"{pluralize(rates.cases, 'case')} under {rubrics}: {verdicts}{more}",
        f"pass rate {render_rate(rates.passed)}; mean score {render_rate(rates.score)}; coverage {render_share(rates.coverage)}",
    )
    return Section("Summary", lines=lines)


def _build_rate_tables(rates: Group) -> Iterator[Section]:
    broke: Mapping[str, int] = {**rates.broke_at}
    stages = [(*_build_rate_row(one), str(broke.get(one.name, 0))) for one in rates.stages if one.cases]
    head = ("stage", "passed", "score", "coverage", "cases")
    yield Section("Stages", (Table((*head, "failed first"), tuple(stages)),))
    criteria = tuple(_build_rate_row(one) for one in rates.criteria if one.cases)
    yield Section("Criteria", (Table(("criterion", *head[1:]), criteria),))
    layers = tuple((one.name, render_rate(one.passed), str(one.passed.n), str(one.unmeasured)) for one in rates.layers)
    yield Section("Layers", (Table(("layer", "passed", "cases", "not measured"), layers),))


def _build_rate_row(one: Rates) -> tuple[str, ...]:
    return one.name, render_rate(one.passed), render_rate(one.score), render_share(one.coverage), str(one.cases)


def _build_decisions(summary: Summary) -> Section:
    decide = summary.rates.decide
    rows = (_build_class_row("call", decide.call), _build_class_row("no call", decide.no_call))
    head = ("decision", "precision", "recall", "F1", "accuracy", "due", "made")
    return Section("Call or no call", (Table(head, rows),), (f"right in {render_rate(decide.accuracy)}",))


def _build_class_row(name: str, one: ClassScore) -> tuple[str, ...]:
    return (
        name,
        render_rate(one.precision),
        render_rate(one.recall),
        render_rate(one.f1),
        render_rate(one.accuracy),
        str(one.support),
        str(one.chosen),
    )


def _build_tools(summary: Summary) -> Iterator[Section]:
    tools = summary.tools
    if tools.scores:
        head = ("tool", "precision", "recall", "F1", "due", "called", "right")
        rows = tuple(
            (
                t.tool,
                render_rate(t.precision),
                render_rate(t.recall),
                render_rate(t.f1),
                str(t.support),
                str(t.called),
                str(t.right),
            )
            for t in tools.scores[:MAX_ROWS]
        )
        yield Section(
            "Tools",
            (Table(head, rows),),
            (f"mean F1 over the tools: {render_number(tools.macro_f1)}", *render_more(tools.scores)),
        )
    if tools.confusions:
        wrong = tuple(
            (
                c.expected or "(none due)",
                c.called or "(not called)",
                str(c.count),
                _render_family(c.family, near=c.near_miss),
            )
            for c in tools.confusions[:MAX_ROWS]
        )
        yield Section(
            "Confusions", (Table(("expected", "called", "times", "near miss"), wrong),), render_more(tools.confusions)
        )
    if summary.usage:
        yield _build_usage(summary.usage)
    if tools.families:
        families = tuple(
            (f.family, str(f.support), str(f.right), str(f.near_misses), str(f.elsewhere)) for f in tools.families
        )
        yield Section("Families", (Table(("family", "due", "right", "near misses", "elsewhere"), families),))


def _build_usage(usage: Sequence[ToolUsage]) -> Section:
    head = ("tool", "p50", "p95", "p99", "timed", "cost p50", "p95", "p99", "priced", "calls")
    rows = tuple(
        (
            one.tool,
            *(_render_amount(value, " s") for value in (one.p50_duration_s, one.p95_duration_s, one.p99_duration_s)),
            str(one.timed),
            *(_render_amount(value, " USD") for value in (one.p50_cost_usd, one.p95_cost_usd, one.p99_cost_usd)),
            str(one.priced),
            str(one.calls),
        )
        for one in usage[:MAX_ROWS]
    )
    return Section("Durations and costs", (Table(head, rows),), render_more(usage))


def _render_amount(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.3g}{unit}"


def _build_calls(calls: CallRates) -> Section:
    rows = (
        ("refused: break the schema of their tool", render_rate(calls.refused), str(calls.refused.n)),
        ("executed: pass, of the others", render_rate(calls.executed), str(calls.executed.n)),
        ("attempted: pass, of all", render_rate(calls.attempted), str(calls.attempted.n)),
    )
    return Section("Calls", (Table((f"of {pluralize(calls.calls, 'call')}", "rate", "measured"), rows),))


def _render_family(family: str | None, *, near: bool) -> str:
    return f"family {family}" if family else ("by name" if near else "-")


def _build_repeats(summary: Summary) -> Iterator[Section]:
    repeats = summary.repeats
    if repeats is not None:
        rows = tuple((f"pass^{one.k}", render_rate(one.rate), str(one.rate.n)) for one in repeats.pass_k)
        trials = sorted({task.trials for task in repeats.tasks})
        span = " to ".join(map(str, dict.fromkeys((trials[0], trials[-1]))))
        line = f"{pluralize(len(repeats.tasks), 'task')}, {span} trials each"
        yield Section("Repeated trials", (Table(("", "rate", "tasks"), rows),), (line,))


def _build_slices(summary: Summary) -> Iterator[Section]:
    if summary.slices:
        rows = tuple(
            (
                f"{one.tag}={one.value}",
                render_rate(one.rates.passed),
                render_rate(one.rates.score),
                _find_worst_stage(one.rates),
                str(one.rates.cases),
            )
            for one in summary.slices[:MAX_ROWS]
        )
        yield Section(
            "Slices",
            (Table(("slice", "passed", "score", "failed most at", "cases"), rows),),
            render_more(summary.slices),
        )


def _find_worst_stage(rates: Group) -> str:
    counts = rates.broke_at
    return max(counts, key=lambda stage: counts[stage]) if counts else "-"


def _build_composition(summary: Summary) -> Iterator[Section]:
    composition = summary.make_up
    due = (
        f"{composition.call} call, {composition.no_call} no call, {composition.mixed} both, {composition.unsaid} unsaid"
    )
    line = f"due: {due}; no call in {render_share(composition.no_call_share)}"
    shares = tuple(
        f"{one.tag} {one.value or '(none)'}: {pluralize(one.cases, 'case')} ({render_share(one.share)})"
        for one in composition.shares
    )
    rows = tuple((t.tool, str(t.positive), str(t.no_call), str(t.recovery)) for t in composition.tools[:MAX_ROWS])
    yield Section(
        "Composition of the set", (Table(("tool", "positive", "no call", "recovery"), rows),), (line, *shares)
    )


def render_rate(one: Estimate) -> str:
    """Render a measured rate with its interval, and the range in which it lies depending on what is open.

    >>> render_rate(Estimate(0.5, 0.25, 0.75, 8)), render_rate(Estimate(None, None, None, 0))
    ('0.50 (0.25-0.75)', '-')
    >>> render_rate(Estimate(1.0, 0.5, 1.0, 2, 0.5, 1.0, 2)), render_rate(Estimate(None, None, None, 0, 0.0, 1.0, 3))
    ('1.00 (0.50-1.00), open 2: 0.50 to 1.00', 'open 3: 0.00 to 1.00')
    """
    measured = (
        "-" if one.value is None else f"{render_number(one.value)} ({render_number(one.low)}-{render_number(one.high)})"
    )
    if not one.open:
        return measured
    between = f"open {one.open}: {render_number(one.worst)} to {render_number(one.best)}"
    return between if one.value is None else f"{measured}, {between}"


def render_more(rows: Sequence[object]) -> tuple[str, ...]:
    """Render how many rows are not shown; empty if all are."""
    return (f"and {len(rows) - MAX_ROWS} more",) if len(rows) > MAX_ROWS else ()
