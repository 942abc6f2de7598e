"""Summaries, comparisons of runs and regression gates as sections of a document, which each form of output shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from service.cli.screen import pluralize
from service.reporting.comparison import CHANGE_KINDS, Comparison, Difference, MeanChange
from service.reporting.document import Section, Table
from service.reporting.escaping import escape_unprintable
from service.reporting.numbers import render_number, render_share
from service.reporting.regression import ProvedRegression, RegressionGate
from service.reporting.summary import Gate, Summary
from service.reporting.summary.calls import Percentiles
from service.reporting.summary.classes import ClassScore
from service.reporting.summary.labelled import CorrectedRate
from service.stats.rates import Estimate, InferredRate

T = TypeVar("T")

MAX_ROWS = 50
"""How many rows of one table are shown; JSON has all of them."""

MAX_PROVED = 20
"""How many proved regressions are listed."""


Value = str | int | None | Estimate | InferredRate


def build_section(title: str, head: Sequence[str], rows: Sequence[Sequence[Value]], *lines: str) -> Iterator[Section]:
    """Build a section with a table of the first rows; none if there is no row."""
    shown = tuple([tuple(map(render_value, row)) for row in rows[:MAX_ROWS]])
    more = [f"and {len(rows) - MAX_ROWS} more"] if len(rows) > MAX_ROWS else []
    if shown:
        yield Section(title, (Table(tuple(head), shown),), (*lines, *more))


def render_value(value: Value) -> str:
    """Render the value of a cell: a rate with its interval, and with the range in which it lies depending on what is open.

    >>> render_value(Estimate(0.5, 0.25, 0.75, 8)), render_value(Estimate(None, None, None, 0)), render_value("")
    ('0.50 (0.25-0.75)', '-', '-')
    >>> render_value(Estimate(1.0, 0.5, 1.0, 2, 0.5, 1.0, 2)), render_value(Estimate(None, None, None, 0, 0.0, 1.0, 3))
    ('1.00 (0.50-1.00), open 2: 0.50 to 1.00', 'open 3: 0.00 to 1.00')
    """
    if isinstance(value, InferredRate):
        return f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"
    if not isinstance(value, Estimate):
        return "-" if value in (None, "") else str(value)
    rate, low, high = map(render_number, (value.value, value.low, value.high))
    measured = "" if value.value is None else f"{rate} ({low}-{high})"
    between = f"open {value.open}: {render_number(value.worst)} to {render_number(value.best)}" if value.open else ""
    return ", ".join(filter(None, [measured, between])) or "-"


# A summary.


def build_summary_sections(summary: Summary) -> Iterator[Section]:
    """Build the sections of a summary, the gate first because it matters most."""
    if summary.gate is not None:
        yield from _build_gate(summary.gate)
    yield from _build_rates(summary)
    yield from _build_corrected(summary.corrected)
    if (calls := summary.calls) and calls.calls:
        rows = [
            ("break the schema of their tool (refused)", calls.refused, calls.refused.n),
            ("pass, of those that fit it (executed)", calls.executed, calls.executed.n),
            ("pass, of all (attempted)", calls.attempted, calls.attempted.n),
        ]
        yield from build_section("Calls", (f"of {pluralize(calls.calls, 'call')}", "rate", "measured"), rows)
    yield from _build_tools(summary)
    yield from _build_groups(summary)
    if summary.warnings:
        yield Section("Warnings", lines=tuple([warning.message for warning in summary.warnings]))


def _build_gate(gate: Gate) -> Iterator[Section]:
    verdict = "passed" if gate.passed else "undecided" if gate.undecided else "failed"
    rows: list[Sequence[Value]] = []
    for one in gate.results:
        value = render_number(one.low) + ("" if one.low == one.high else f" to {render_number(one.high)}")
        broke = f" ({one.failed_at})" if one.failed_at else ""
        rows.append((one.assertion, one.status, value, one.cases, f"{one.message}{broke}"))
    title = f"Gate: {verdict}" + (f" at {gate.first_failing_stage}" if gate.first_failing_stage else "")
    return build_section(title, ("assertion", "status", "value", "cases", "why"), rows)


def _build_rates(summary: Summary) -> Iterator[Section]:
    rates, decide = summary.rates, summary.rates.decide
    verdicts = ", ".join([f"{count} {verdict}" for verdict, count in rates.verdicts.items()])
    rubrics = ", ".join([f"{ref.id}@{ref.version}" for ref in summary.rubrics])
    rest = {"not finished": summary.unfinished, "could not be scored": summary.unscored}
    more = "".join([f"; {count} {words}" for words, count in rest.items() if count])
    passed, score = render_value(rates.passed), render_value(rates.score)
    lines = (
        f"{pluralize(rates.cases, 'case')} under {rubrics}: {verdicts}{more}",
        f"pass rate {passed}; mean score {score}; coverage {render_share(rates.coverage)}",
    )
    yield Section("Summary", lines=lines)
    broke: dict[str, int] = {**rates.first_failing_stage}
    head = ("passed", "score", "coverage", "cases")
    stages, criteria = (
        [(one.name, one.passed, one.score, render_share(one.coverage), one.cases) for one in some if one.cases]
        for some in (rates.stages, rates.criteria)
    )
    with_broke = [(*row, broke.get(row[0], 0)) for row in stages]
    yield from build_section("Stages", ("stage", *head, "failed first"), with_broke)
    yield from build_section("Criteria", ("criterion", *head), criteria)
    classes = _list_class_rows([decide.call, replace(decide.no_call, name="no call")])
    right = f"right decisions: {render_value(decide.accuracy)}"
    yield from build_section("Call or no call", ("decision", *_CLASS_HEAD), classes, right)


_CLASS_HEAD = ("precision", "recall", "F1", "due", "made", "right")


def _list_class_rows(classes: Sequence[ClassScore]) -> Sequence[Sequence[Value]]:
    return [(one.name, one.precision, one.recall, one.f1, one.due, one.made, one.right) for one in classes]


def _build_corrected(rates: Sequence[CorrectedRate]) -> Iterator[Section]:
    """Build the section of rates corrected by labels."""
    rows: list[Sequence[Value]] = []
    lines: list[str] = []
    for one in rates:
        what = f"{one.criterion} of {'calls' if one.unit == 'step' else 'reports'}"
        naive = "" if one.naive is None else f"{one.naive:.3f}"
        counts = [rate.more_labels for rate in (one.humans, one.corrected) if rate and rate.more_labels is not None]
        more = f"{min(counts)} more" if counts else ""
        rows.append((what, one.labelled, one.unlabelled, naive, one.humans, one.corrected, more))
        items = [item.trace_id + ("" if item.step is None else f" call {item.step}") for item in one.label_next]
        lines += [f"{one.criterion}: label next, at random: {', '.join(items)}"] if items else []
        lines += [f"{one.criterion}: {one.unmatched} labels match no report"] if one.unmatched else []
        if one.humans is None:
            lines += [f"{one.criterion}: no rate from fewer than two labels of different groups"]
        elif one.corrected is None:
            why = "nothing is left to correct" if not one.unlabelled else "the others are all of one group"
            lines += [f"{one.criterion}: not corrected, because {why}"]
    head = ("pass rate by labels", "labels", "others", "as scored", "humans alone", "corrected", "to halve it")
    return build_section("Corrected by labels", head, rows, *lines)


def _build_tools(summary: Summary) -> Iterator[Section]:
    tools = summary.tools
    mean = f"mean F1 over the tools: {render_number(tools.macro_f1)}"
    yield from build_section("Tools", ("tool", *_CLASS_HEAD), _list_class_rows(tools.scores), mean)
    confusions = [
        (one.expected or "(none due)", one.called or "(not called)", one.count, "by name" if one.near_miss else "")
        for one in tools.confusions
    ]
    yield from build_section("Confusions", ("expected", "called", "times", "near miss"), confusions)
    usage = [
        (one.tool, *_render_percentiles(one.duration_s, "s"), *_render_percentiles(one.cost_usd, "USD"), one.calls)
        for one in summary.usage
    ]
    head = ("tool", "p50", "p95", "p99", "timed", "cost p50", "p95", "p99", "priced", "calls")
    yield from build_section("Durations and costs", head, usage)


def _render_percentiles(one: Percentiles | None, unit: str) -> tuple[Value, ...]:
    if one is None:
        return None, None, None, 0
    return *[f"{value:.3g} {unit}" for value in (one.p50, one.p95, one.p99)], one.known


def _build_groups(summary: Summary) -> Iterator[Section]:
    """Build the sections on trials and slices."""
    repeats = summary.repeats
    if repeats is not None:
        trials = sorted({task.trials for task in repeats.tasks})
        span = " to ".join(map(str, dict.fromkeys((trials[0], trials[-1]))))
        line = f"{pluralize(len(repeats.tasks), 'task')}, {span} trials each"
        rows = [(f"pass^{one.k}", one.rate, one.rate.n) for one in repeats.pass_k]
        yield from build_section("Repeated trials", ("", "rate", "tasks"), rows, line)
    slices: list[Sequence[Value]] = []
    for one in summary.slices:
        broke = one.rates.first_failing_stage
        worst = max(broke, key=lambda stage: broke[stage], default=None)
        slices.append((f"{one.tag}={one.value}", one.rates.passed, one.rates.score, worst, one.rates.cases))
    yield from build_section("Slices", ("slice", "passed", "score", "failed most at", "cases"), slices)


# Two runs.


def build_comparison_sections(comparison: Comparison, gate: RegressionGate | None = None) -> Iterator[Section]:
    """Build the sections of a comparison: its gate, overview, differences, changed cases."""
    if gate is not None and (lines := tuple(list_gate_lines(gate))):
        yield Section("Regressions", lines=lines)
    counts = Counter([one.kind for one in comparison.changes])
    kinds = [f"{counts[kind]} {kind.replace('_', ' ')}" for kind in CHANGE_KINDS if counts[kind]]
    kinds += [f"{comparison.cases - len(comparison.changes)} unchanged"]
    overview = [f"{pluralize(comparison.cases, 'case')} in both: {', '.join(kinds)}"]
    for name, names in (("A", comparison.only_a), ("B", comparison.only_b)):
        counted = "undecided for the gate" if gate is not None and name == "A" else "not counted"
        overview += [f"{pluralize(len(names), 'case')} only in {name}, {counted}"] if names else []
    overview += ["A and B were scored with different rubrics"] if comparison.rubrics_differ else []
    if count := comparison.passed.open:
        more = "" if gate is not None and gate.forgiven else ", or pass --allow-undecided"
        advice = f"expect the calls and the answer, or score both runs with a judge{more}"
        overview += [f"{pluralize(count, 'case')} undecided in A or B: {advice}"]
    yield Section("Compared", lines=tuple(overview))
    changes: list[Sequence[Value]] = []
    for one in comparison.changes:
        case = one.case if one.trial is None else f"{one.case} ({one.trial})"
        a, b = (f"{side.verdict} {render_number(side.score)}" for side in (one.a, one.b))
        criteria = [*(f"+{name}" for name in one.now_passing), *(f"-{name}" for name in one.now_failing)]
        changes.append((case, one.kind.replace("_", " "), a, b, one.b.first_failing_stage, " ".join(criteria)))
    yield from build_section("Changed cases", ("case", "change", "A", "B", "failed at", "criteria"), changes)
    numbers = [(name_number(one.name), one) for one in (comparison.passed, comparison.score, *comparison.stages)]
    numbers += [(f"criterion {one.name}", one) for one in comparison.criteria]
    head = ("", "A", "B", "B - A", "95% interval", "up", "down", "cases", "open")
    rows: list[Sequence[Value]] = []
    for name, one in numbers:
        measured = one.measured
        change = measured and f"{measured.value:+.3f}"
        interval = measured and f"{measured.low:+.2f} to {measured.high:+.2f}"
        ends = render_number(one.a.value), render_number(one.b.value)
        rows.append((name, *ends, change, interval, one.improved, one.worsened, one.n, one.open))
    yield from build_section("Differences", head, rows)


def name_number(name: str) -> str:
    """Name what is compared, as summaries do."""
    return {"passed": "pass rate", "score": "mean score"}.get(name, name)


def list_gate_lines(gate: RegressionGate) -> Iterator[str]:
    """Describe each proved regression and each gated number in a line."""
    if gate.reason:
        yield f"undecided: {gate.reason}"
    yield from (f"{one.status}: {explain_proved(one)}" for one in gate.proved[:MAX_PROVED])
    if len(gate.proved) > MAX_PROVED:
        yield f"and {len(gate.proved) - MAX_PROVED} more"
    yield from (f"{one.status}: {explain_change(one)}" for one in gate.numbers)
    if gate.status == "within noise" and not gate.numbers:
        yield "none"
    if gate.forgiven:
        left_out = pluralize(gate.forgiven, "undecided case")
        yield f"{left_out} counted only where code fails what it did not fail before (--allow-undecided)"


def explain_proved(one: ProvedRegression) -> str:
    """Say what code fails now that passed before."""
    return escape_unprintable(f"{one.case}: {one.criterion} {one.why}" if one.criterion else f"{one.case}: {one.why}")


def explain_change(one: Difference) -> str:
    """Say how far a gated number changed, and how far it may have."""
    if one.best is None or one.worst is None:
        return f"{name_number(one.name)}: no case to compare"

    def render(change: MeanChange) -> str:
        return f"{change.value:+.3f} (95 % interval {change.low:+.3f} to {change.high:+.3f})"

    name, cases = name_number(one.name), pluralize(one.cases, "case")
    if not one.open:
        return f"{name} changed by {render(one.best)} over {cases}"
    open_cases = f"{pluralize(one.open, 'case')} open in A or B"
    return f"{name} changed by something from {render(one.worst)} to {render(one.best)} over {cases}, because of {open_cases}"
