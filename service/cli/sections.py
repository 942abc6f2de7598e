"""Summaries, comparisons of runs and regression gates as sections of a document, which each form of output shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from service.cli.screen import pluralize
from service.reporting.comparison import CaseChange, Comparison, Difference
from service.reporting.document import Section, Table
from service.reporting.escaping import escape_unprintable
from service.reporting.numbers import render_number, render_share
from service.reporting.regression import NumberChange, ProvedRegression, RegressionGate
from service.reporting.summary import Group, Rates, Slice, Summary
from service.reporting.summary.calls import Percentiles, ToolUsage
from service.reporting.summary.classes import ClassScore, Confusion
from service.reporting.summary.gate import AssertionResult, Gate
from service.reporting.summary.labelled import CorrectedRate
from service.stats.corrected import InferredRate
from service.stats.rates import Estimate

T = TypeVar("T")

MAX_ROWS = 50
"""How many rows of one table are shown; JSON has all of them."""

MAX_PROVED = 20
"""How many proved regressions are listed."""


def build_section(
    title: str, head: Sequence[str], things: Sequence[T], build_row: Callable[[T], Sequence[str]], *lines: str
) -> Iterator[Section]:
    """Build a section with a table, a row for each of the first things; none if there is no thing."""
    rows = tuple([tuple(build_row(one)) for one in things[:MAX_ROWS]])
    more = [f"and {len(things) - MAX_ROWS} more"] if len(things) > MAX_ROWS else []
    if rows:
        yield Section(title, (Table(tuple(head), rows),), (*lines, *more))


def render_rate(one: Estimate) -> str:
    """Render a measured rate with its interval, and the range in which it lies depending on what is open.

    >>> render_rate(Estimate(0.5, 0.25, 0.75, 8)), render_rate(Estimate(None, None, None, 0))
    ('0.50 (0.25-0.75)', '-')
    >>> render_rate(Estimate(1.0, 0.5, 1.0, 2, 0.5, 1.0, 2)), render_rate(Estimate(None, None, None, 0, 0.0, 1.0, 3))
    ('1.00 (0.50-1.00), open 2: 0.50 to 1.00', 'open 3: 0.00 to 1.00')
    """
    value, low, high = map(render_number, (one.value, one.low, one.high))
    measured = "" if one.value is None else f"{value} ({low}-{high})"
    between = f"open {one.open}: {render_number(one.worst)} to {render_number(one.best)}" if one.open else ""
    return ", ".join(filter(None, [measured, between])) or "-"


# A summary.


def build_summary_sections(summary: Summary) -> Iterator[Section]:
    """Build the sections of a summary, the gate first because it matters most."""
    if summary.gate is not None:
        yield from _build_gate(summary.gate)
    yield from _build_rates(summary, summary.rates)
    yield from _build_corrected(summary.corrected)
    calls = summary.calls
    if calls is not None and calls.calls:
        kinds = [
            ("refused: break the schema of their tool", calls.refused),
            ("executed: pass, of the others", calls.executed),
            ("attempted: pass, of all", calls.attempted),
        ]
        head = (f"of {pluralize(calls.calls, 'call')}", "rate", "measured")
        yield from build_section("Calls", head, kinds, lambda one: (one[0], render_rate(one[1]), str(one[1].n)))
    yield from _build_tools(summary)
    yield from _build_groups(summary)
    if summary.warnings:
        yield Section("Warnings", lines=tuple(warning.message for warning in summary.warnings))


def _build_gate(gate: Gate) -> Iterator[Section]:
    def build_row(one: AssertionResult) -> tuple[str, ...]:
        value = render_number(one.low) + ("" if one.low == one.high else f" to {render_number(one.high)}")
        broke = f" (failed at {one.broke_at})" if one.broke_at else ""
        return one.assertion, one.status, value, str(one.cases), f"{one.message}{broke}" or "-"

    verdict = "passed" if gate.passed else "undecided" if gate.undecided else "failed"
    title = f"Gate: {verdict}" + (f" at {gate.broke_at}" if gate.broke_at else "")
    return build_section(title, ("assertion", "status", "value", "cases", "why"), gate.results, build_row)


def _build_rates(summary: Summary, rates: Group) -> Iterator[Section]:
    def build_row(one: Rates) -> tuple[str, ...]:
        return one.name, render_rate(one.passed), render_rate(one.score), render_share(one.coverage), str(one.cases)

    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in rates.verdicts.items())
    rubrics = ", ".join(f"{ref.id}@{ref.version}" for ref in summary.rubrics)
    rest = {"not finished": summary.unfinished, "could not be scored": summary.unscored}
    more = "".join([f"; {count} {words}" for words, count in rest.items() if count])
    passed, score = render_rate(rates.passed), render_rate(rates.score)
    lines = (
        f"{pluralize(rates.cases, 'case')} under {rubrics}: {verdicts}{more}",
        f"pass rate {passed}; mean score {score}; coverage {render_share(rates.coverage)}",
    )
    yield Section("Summary", lines=lines)
    head, broke = ("passed", "score", "coverage", "cases"), dict[str, int](rates.broke_at)  # type: ignore[arg-type]
    stages, criteria = ([one for one in some if one.cases] for some in (rates.stages, rates.criteria))
    rows = [(*build_row(one), str(broke.get(one.name, 0))) for one in stages]
    yield from build_section("Stages", ("stage", *head, "failed first"), rows, lambda row: row)
    yield from build_section("Criteria", ("criterion", *head), criteria, build_row)
    classes = [rates.decide.call, rates.decide.no_call]
    yield from build_section(
        "Call or no call",
        ("decision", *_CLASS_HEAD),
        classes,
        _render_class,
        f"right in {render_rate(rates.decide.accuracy)}",
    )


_CLASS_HEAD = ("precision", "recall", "F1", "due", "made", "right")


def _render_class(one: ClassScore) -> tuple[str, ...]:
    figures = map(render_rate, (one.precision, one.recall, one.f1))
    return one.name, *figures, str(one.due), str(one.made), str(one.right)


def _build_corrected(rates: Sequence[CorrectedRate]) -> Iterator[Section]:
    """Build the section of rates corrected by labels."""

    def render(rate: InferredRate | None) -> str:
        return "-" if rate is None else f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]"

    def build_row(one: CorrectedRate) -> tuple[str, ...]:
        what = f"{one.criterion} of {'calls' if one.unit == 'step' else 'reports'}"
        naive = "-" if one.naive is None else f"{one.naive:.3f}"
        count = one.corrected and one.corrected.more_labels
        more = "-" if count is None else f"{count} more"
        return what, str(one.labelled), str(one.unlabelled), naive, render(one.humans), render(one.corrected), more

    lines: list[str] = []
    for one in rates:
        items = [item.trace_id + ("" if item.step is None else f" call {item.step}") for item in one.label_next]
        lines += [f"{one.criterion}: label next, at random: {', '.join(items)}"] if items else []
        lines += [f"{one.criterion}: {one.unmatched} labels match no report"] if one.unmatched else []
    head = ("pass rate by labels", "labels", "others", "as scored", "humans alone", "corrected", "to halve it")
    return build_section("Corrected by labels", head, rates, build_row, *lines)


def _build_tools(summary: Summary) -> Iterator[Section]:
    tools = summary.tools
    mean = f"mean F1 over the tools: {render_number(tools.macro_f1)}"
    yield from build_section("Tools", ("tool", *_CLASS_HEAD), tools.scores, _render_class, mean)

    def render_confusion(one: Confusion) -> tuple[str, ...]:
        near = f"family {one.family}" if one.family else "by name" if one.near_miss else "-"
        return one.expected or "(none due)", one.called or "(not called)", str(one.count), near

    head = ("expected", "called", "times", "near miss")
    yield from build_section("Confusions", head, tools.confusions, render_confusion)

    def render_usage(one: ToolUsage) -> tuple[str, ...]:
        return (
            one.tool,
            *_render_percentiles(one.duration_s, "s"),
            *_render_percentiles(one.cost_usd, "USD"),
            str(one.calls),
        )

    head = ("tool", "p50", "p95", "p99", "timed", "cost p50", "p95", "p99", "priced", "calls")
    yield from build_section("Durations and costs", head, summary.usage, render_usage)


def _render_percentiles(one: Percentiles | None, unit: str) -> tuple[str, ...]:
    figures = ("-", "-", "-") if one is None else [f"{value:.3g} {unit}" for value in (one.p50, one.p95, one.p99)]
    return *figures, str(one.known if one else 0)


def _build_groups(summary: Summary) -> Iterator[Section]:
    """Build the sections on trials, slices and the composition of the set."""
    repeats, composition = summary.repeats, summary.make_up
    if repeats is not None:
        trials = sorted({task.trials for task in repeats.tasks})
        span = " to ".join(map(str, dict.fromkeys((trials[0], trials[-1]))))
        yield from build_section(
            "Repeated trials",
            ("", "rate", "tasks"),
            repeats.pass_k,
            lambda one: (f"pass^{one.k}", render_rate(one.rate), str(one.rate.n)),
            f"{pluralize(len(repeats.tasks), 'task')}, {span} trials each",
        )

    def render_slice(one: Slice) -> tuple[str, ...]:
        broke = one.rates.broke_at
        worst = max(broke, key=lambda stage: broke[stage]) if broke else "-"
        rates = render_rate(one.rates.passed), render_rate(one.rates.score)
        return f"{one.tag}={one.value}", *rates, worst, str(one.rates.cases)

    head = ("slice", "passed", "score", "failed most at", "cases")
    yield from build_section("Slices", head, summary.slices, render_slice)
    due = (
        f"{composition.call} call, {composition.no_call} no call, {composition.mixed} both, {composition.unsaid} unsaid"
    )
    lines = (f"due: {due}; no call in {render_share(composition.no_call_share)}",)
    tools = tuple([(t.tool, str(t.positive), str(t.no_call), str(t.recovery)) for t in composition.tools[:MAX_ROWS]])
    yield Section("Composition of the set", (Table(("tool", "positive", "no call", "recovery"), tools),), lines)


# Two runs.


def build_comparison_sections(comparison: Comparison, gate: RegressionGate | None = None) -> Iterator[Section]:
    """Build the sections of a comparison: its gate, overview, differences, changed cases."""
    if gate is not None and (lines := tuple(list_gate_lines(gate))):
        yield Section("Regressions", lines=lines)
    overview = [f"{pluralize(comparison.cases, 'case')} in both"]
    for name, names in (("a", comparison.only_a), ("b", comparison.only_b)):
        overview += [f"only in {name}, not counted: {pluralize(len(names), 'case')}"] if names else []
    overview += ["the two runs were scored with different rubrics"] if comparison.rubrics_differ else []
    yield Section("Compared", lines=tuple(overview))
    numbers = [(one.name, one) for one in (comparison.passed, comparison.score, *comparison.stages)]
    numbers += [(f"criterion {one.name}", one) for one in comparison.criteria]
    head = ("b against a", "a", "b", "b - a", "95% interval", "better", "worse", "cases", "open", "p")
    yield from build_section("Differences", head, numbers, lambda pair: (pair[0], *_render_difference(pair[1])))
    head = ("case", "kind", "a", "b", "failed at", "criteria")
    yield from build_section("Changed cases", head, comparison.changes, _render_case_change)


def _render_difference(one: Difference) -> tuple[str, ...]:
    return (
        render_number(one.a.value),
        render_number(one.b.value),
        "-" if one.difference is None else f"{one.difference:+.3f}",
        "-" if one.low is None or one.high is None else f"{one.low:+.2f} to {one.high:+.2f}",
        *map(str, (one.improved, one.worsened, one.n, one.open)),
        "-" if one.p_value is None else f"{one.p_value:.3f}",
    )


def _render_case_change(one: CaseChange) -> tuple[str, ...]:
    case = one.case if one.trial is None else f"{one.case} ({one.trial})"
    a, b = (f"{side.verdict} {render_number(side.score)}" for side in (one.a, one.b))
    criteria = [*(f"+{name}" for name in one.now_passing), *(f"-{name}" for name in one.now_failing)]
    return case, one.kind, a, b, one.b.broke_at or "-", " ".join(criteria) or "-"


def list_gate_lines(gate: RegressionGate) -> Iterator[str]:
    """Describe each proved regression and each gated number in a line."""
    if gate.reason:
        yield f"undecided: {gate.reason}"
    yield from (f"{one.status}: {explain_proved(one)}" for one in gate.proved[:MAX_PROVED])
    if len(gate.proved) > MAX_PROVED:
        yield f"and {len(gate.proved) - MAX_PROVED} more"
    yield from (f"{one.status}: {explain_change(one)}" for one in gate.numbers)


def explain_proved(one: ProvedRegression) -> str:
    """Say what code fails now that passed before."""
    return escape_unprintable((f"{one.criterion} in " if one.criterion else "") + f"{one.case}: {one.why}")


def explain_change(one: NumberChange) -> str:
    """Say how far a gated number changed, and how far it may have."""
    if not one.cases:
        return f"no case of {one.name} to compare"

    def render(change: float, interval: tuple[float, float]) -> str:
        return f"{change:+.3f} (95 % interval {interval[0]:+.3f} to {interval[1]:+.3f})"

    text = f"{one.name} changed by {render(one.best, one.best_interval)} over {pluralize(one.cases, 'case')}"
    more = f"; or by {render(one.worst, one.worst_interval)}, depending on {pluralize(one.open, 'open case')}"
    return text + more if one.open else text
