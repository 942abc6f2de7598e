"""Summaries and comparisons as tables of text, for a terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table
from rich.text import Text

from service.cli.rendering.console import escape_unprintable, number, plural, share
from service.reporting.comparison import CaseChange, Comparison, Difference
from service.reporting.summary import Group, Rates, Summary
from service.reporting.summary.classes import ClassScore
from service.reporting.summary.gate import AssertionResult, Gate
from service.reporting.summary.labelled import RateEstimate, ToLabel
from service.stats.rates import Estimate

MOST = 50
"""Rows of one table that are shown; JSON has all."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with a table, lines below it, or both. The first column is text, the others are numbers."""

    title: str
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()


def build_summary_sections(summary: Summary) -> Iterator[Section]:
    """A summary, the gate first: that is what a run is read for."""
    if summary.gate is not None:
        yield _build_gate(summary.gate)
    yield _build_overview(summary)
    yield from _build_rate_tables(summary.rates)
    yield from _build_corrected(summary)
    yield _build_decisions(summary)
    yield from _build_tools(summary)
    yield from _build_repeats(summary)
    yield from _build_slices(summary)
    yield from _make_up(summary)
    if summary.warnings:
        yield Section("Warnings", lines=tuple(caution.message for caution in summary.warnings))


def _build_corrected(summary: Summary) -> Iterator[Section]:
    """What labels make of the rates."""
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
        f"{one.criterion}: label next, at random: {', '.join([_item(item) for item in one.label_next])}"
        for one in summary.corrected
        if one.label_next
    ]
    lines += [f"{one.criterion}: {one.unmatched} labels fit no report" for one in summary.corrected if one.unmatched]
    if rows:
        yield Section("Corrected by labels", head, tuple(rows), tuple(lines))


def _render_estimate(rate: RateEstimate | None) -> str:
    return "-" if rate is None else f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]"


def _item(item: ToLabel) -> str:
    return item.trace_id if item.step is None else f"{item.trace_id} call {item.step}"


def build_comparison_sections(comparison: Comparison) -> Iterator[Section]:
    """A comparison: the differences, then the cases that changed."""
    lines = [f"{plural(comparison.cases, 'case')} in both"]
    for name, names in (("a", comparison.only_a), ("b", comparison.only_b)):
        if names:
            lines.append(f"only in {name}, not counted: {plural(len(names), 'case')}")
    if comparison.rubrics_differ:
        lines.append("the two runs were scored with different rubrics")
    yield Section("Compared", lines=tuple(lines))
    head = ("b against a", "a", "b", "b - a", "95% interval", "better", "worse", "cases", "open", "p")
    numbers = [comparison.passed, comparison.score, *comparison.stages]
    rows = (*(_difference(one) for one in numbers), *(_difference(one, "criterion ") for one in comparison.criteria))
    yield Section("Differences", head, rows)
    if comparison.changes:
        rows = tuple(_change(one) for one in comparison.changes[:MOST])
        yield Section(
            "Changed cases", ("case", "kind", "a", "b", "broke at", "criteria"), rows, _more(comparison.changes)
        )


def show(console: Console, sections: Iterable[Section]) -> None:
    """Print sections to a terminal or a file."""
    for n, section in enumerate(sections):
        if n:
            console.print()
        console.print(Text(section.title, style="bold"))
        if section.rows:
            console.print(_build_table(section))
        for line in section.lines:
            console.print(Text(escape_unprintable(line)), soft_wrap=not console.is_terminal)


def render_markdown(sections: Iterable[Section]) -> str:
    """The same as Markdown."""
    return "\n\n".join(part for section in sections for part in _render_section(section)) + "\n"


def _build_table(section: Section) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for n, name in enumerate(section.head):
        table.add_column(name, justify="right" if n else "left", overflow="fold")
    for row in section.rows:
        table.add_row(*(Text(escape_unprintable(cell)) for cell in row))
    return table


def _render_section(section: Section) -> Iterator[str]:
    yield f"### {section.title}"
    if section.rows:
        rule = ["---", *["---:"] * (len(section.head) - 1)]
        yield "\n".join(_render_row(cells) for cells in (section.head, rule, *section.rows))
    if section.lines:
        yield "\n".join(f"- {escape_markdown(line)}" for line in section.lines)


def _render_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(map(escape_markdown, cells)) + " |"


def escape_markdown(text: str) -> str:
    r"""Text that Markdown takes literally, on one line.

    >>> escape_markdown("a|b <i>_c_</i>")
    'a\\|b \\<i\\>\\_c\\_\\</i\\>'
    """
    return "".join(
        f"\\{character}" if character in "\\|`*_<>[]#&" else character for character in escape_unprintable(text)
    )


def _build_gate(gate: Gate) -> Section:
    verdict = "passed" if gate.passed else "undecided" if gate.undecided else "failed"
    broke = f"; the step that broke: {gate.broke_at}" if gate.broke_at else ""
    rows = tuple(
        (one.assertion, one.status, _actual(one), str(one.cases), _render_assertion(one)) for one in gate.results
    )
    return Section(f"Gate: {verdict}{broke}", ("assertion", "status", "value", "cases", "why"), rows)


def _actual(one: AssertionResult) -> str:
    """What was compared: one number, or the ends of what is open."""
    return number(one.low) if one.low == one.high else f"{number(one.low)} to {number(one.high)}"


def _render_assertion(one: AssertionResult) -> str:
    broke = f" (broke at {one.broke_at})" if one.broke_at else ""
    return f"{one.message}{broke}" or "-"


def _build_overview(summary: Summary) -> Section:
    rates = summary.rates
    verdicts = ", ".join(f"{count} {verdict}" for verdict, count in rates.verdicts.items())
    rubrics = ", ".join(f"{ref.id}@{ref.version}" for ref in summary.rubrics)
    lines = (
        f"{plural(rates.cases, 'case')} under {rubrics}: {verdicts}",
        f"passed {render_rate(rates.passed)}; mean score {render_rate(rates.score)}; coverage {share(rates.coverage)}",
    )
    return Section("Summary", lines=lines)


def _build_rate_tables(rates: Group) -> Iterator[Section]:
    broke: Mapping[str, int] = {**rates.broke_at}
    stages = [(*_rates(one), str(broke.get(one.name, 0))) for one in rates.stages if one.cases]
    yield Section(
        "Steps of the contract", ("step", "passed", "score", "coverage", "cases", "broke first"), tuple(stages)
    )
    criteria = tuple(_rates(one) for one in rates.criteria if one.cases)
    yield Section("Criteria", ("criterion", "passed", "score", "coverage", "cases"), criteria)
    layers = tuple((one.name, render_rate(one.passed), str(one.passed.n), str(one.unmeasured)) for one in rates.layers)
    yield Section("Layers", ("layer", "passed", "cases", "not looked at"), layers)


def _rates(one: Rates) -> tuple[str, ...]:
    return one.name, render_rate(one.passed), render_rate(one.score), share(one.coverage), str(one.cases)


def _build_decisions(summary: Summary) -> Section:
    decide = summary.rates.decide
    rows = (_class("call", decide.call), _class("no call", decide.no_call))
    head = ("decision", "precision", "recall", "F1", "accuracy", "due", "made")
    return Section("Call or no call", head, rows, (f"right in {render_rate(decide.accuracy)}",))


def _class(name: str, one: ClassScore) -> tuple[str, ...]:
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
            for t in tools.scores[:MOST]
        )
        yield Section("Tools", head, rows, (f"mean F1 over the tools: {number(tools.macro_f1)}", *_more(tools.scores)))
    if tools.confusions:
        wrong = tuple(
            (
                c.expected or "(none due)",
                c.called or "(not called)",
                str(c.count),
                _render_family(c.family, near=c.near_miss),
            )
            for c in tools.confusions[:MOST]
        )
        yield Section("Confusions", ("expected", "called", "times", "near miss"), wrong, _more(tools.confusions))
    if tools.families:
        families = tuple(
            (f.family, str(f.support), str(f.right), str(f.near_misses), str(f.elsewhere)) for f in tools.families
        )
        yield Section("Families", ("family", "due", "right", "near misses", "elsewhere"), families)


def _render_family(family: str | None, *, near: bool) -> str:
    return f"family {family}" if family else ("by name" if near else "-")


def _build_repeats(summary: Summary) -> Iterator[Section]:
    repeats = summary.repeats
    if repeats is not None:
        rows = tuple((f"pass^{one.k}", render_rate(one.rate), str(one.rate.n)) for one in repeats.pass_k)
        trials = sorted({task.trials for task in repeats.tasks})
        span = " to ".join(map(str, dict.fromkeys((trials[0], trials[-1]))))
        line = f"{plural(len(repeats.tasks), 'task')}, {span} trials each"
        yield Section("Repeated trials", ("", "rate", "tasks"), rows, (line,))


def _build_slices(summary: Summary) -> Iterator[Section]:
    if summary.slices:
        rows = tuple(
            (
                f"{one.tag}={one.value}",
                render_rate(one.rates.passed),
                render_rate(one.rates.score),
                _broke(one.rates),
                str(one.rates.cases),
            )
            for one in summary.slices[:MOST]
        )
        yield Section("Slices", ("slice", "passed", "score", "broke most at", "cases"), rows, _more(summary.slices))


def _broke(rates: Group) -> str:
    counts = rates.broke_at
    return max(counts, key=lambda stage: counts[stage]) if counts else "-"


def _make_up(summary: Summary) -> Iterator[Section]:
    made = summary.make_up
    due = f"{made.call} call, {made.no_call} no call, {made.mixed} both, {made.unsaid} unsaid"
    line = f"due: {due}; no call in {share(made.no_call_share)}"
    shares = tuple(
        f"{one.tag} {one.value or '(none)'}: {plural(one.cases, 'case')} ({share(one.share)})" for one in made.shares
    )
    rows = tuple((t.tool, str(t.positive), str(t.no_call), str(t.recovery)) for t in made.tools[:MOST])
    yield Section("Make-up of the set", ("tool", "positive", "no call", "recovery"), rows, (line, *shares))


def render_rate(one: Estimate) -> str:
    """A rate of what was measured with its interval, and between which ends it lies with what is open.

    >>> render_rate(Estimate(0.5, 0.25, 0.75, 8)), render_rate(Estimate(None, None, None, 0))
    ('0.50 (0.25-0.75)', '-')
    >>> render_rate(Estimate(1.0, 0.5, 1.0, 2, 0.5, 1.0, 2)), render_rate(Estimate(None, None, None, 0, 0.0, 1.0, 3))
    ('1.00 (0.50-1.00), open 2: 0.50 to 1.00', 'open 3: 0.00 to 1.00')
    """
    measured = "-" if one.value is None else f"{number(one.value)} ({number(one.low)}-{number(one.high)})"
    if not one.open:
        return measured
    between = f"open {one.open}: {number(one.worst)} to {number(one.best)}"
    return between if one.value is None else f"{measured}, {between}"


def _difference(one: Difference, before: str = "") -> tuple[str, ...]:
    interval = "-" if one.low is None or one.high is None else f"{one.low:+.2f} to {one.high:+.2f}"
    return (
        before + one.name,
        number(one.a.value),
        number(one.b.value),
        "-" if one.difference is None else f"{one.difference:+.3f}",
        interval,
        str(one.improved),
        str(one.worsened),
        str(one.n),
        str(one.open),
        "-" if one.p_value is None else f"{one.p_value:.3f}",
    )


def _change(one: CaseChange) -> tuple[str, ...]:
    case = one.case if one.trial is None else f"{one.case} ({one.trial})"
    a, b = (f"{side.verdict} {number(side.score)}" for side in (one.a, one.b))
    criteria = [*(f"+{name}" for name in one.now_passing), *(f"-{name}" for name in one.now_failing)]
    return case, one.kind, a, b, one.b.broke_at or "-", " ".join(criteria) or "-"


def _more(found: Sequence[object]) -> tuple[str, ...]:
    return (f"and {len(found) - MOST} more",) if len(found) > MOST else ()
