"""Count the results of a run, and say in words what it came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from math import fsum
from typing import get_args

from service.cli.inputs import MAX_LISTED_REFUSALS, Refusal
from service.cli.scoring import Result
from service.cli.screen import pluralize
from service.cli.sections import render_value
from service.core.money import NOTHING, Cost
from service.core.report import Report
from service.core.scores import Range, Verdict
from service.errors import SETUP_CAUSES, FaultCause
from service.reporting.breaks import OutcomeKind, build_breakdown, describe_stages
from service.reporting.comparison import TRIAL
from service.reporting.numbers import render_number
from service.reporting.regression import is_unforgiven
from service.reporting.statements import NEEDS_JUDGE, explain_gap, list_gaps, list_uncertified

VERDICTS: tuple[Verdict, ...] = ("pass", "warn", "fail", "undecided", "not_applicable")

MAX_REASONS = 6
"""How many reasons for open outcomes are listed."""

MAX_FLAKY_CASES = 20
"""How many flaky cases are listed."""

FAULTS: frozenset[str] = frozenset(get_args(FaultCause))


def render_verdicts(counts: Counter[Verdict]) -> str:
    """Render how many traces have each verdict."""
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])


@dataclass
class Tally:
    """The counts of a run."""

    verdicts: Counter[Verdict] = field(default_factory=Counter["Verdict"])
    rubrics: Counter[str] = field(default_factory=Counter[str])
    scores: list[float] = field(default_factory=list[float])
    """The measured scores."""
    ranges: list[Range] = field(default_factory=list["Range"])
    """All scores at their worst and at their best, as gates count them."""
    refused: int = 0
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    """The first refused records, as far as they are listed, without their text."""
    guessed: Counter[str] = field(default_factory=Counter[str])
    left_out: Counter[str] = field(default_factory=Counter[str])
    """Both as `Inputs` counts them."""
    parts: int = 0
    """On Ray: how many parts were there before the run."""
    code_only: int = 0
    """Traces for which only what code decides was checked."""
    unforgiven: int = 0
    """Undecided verdicts caused by something that broke or could not be read."""
    uncertified: Counter[str] = field(default_factory=Counter[str])
    """In how many traces a criterion was decided by a judge without a certified fit."""
    open: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """In how many traces a criterion is open, by criterion and reason."""
    kinds: Counter[OutcomeKind] = field(default_factory=Counter[OutcomeKind])
    """How many traces have each combination of verdict, stages and group."""
    replies: int = 0
    cache_hits: int = 0
    cost: Cost = NOTHING
    faults: Counter[str] = field(default_factory=Counter[str])
    """Questions that ended in a judge's fault, by cause."""
    judged: Counter[str] = field(default_factory=Counter[str])
    """Judged outcomes, by whether they are calibrated."""
    trials: Counter[tuple[str, Verdict]] = field(default_factory=Counter[tuple[str, "Verdict"]])
    """The verdicts of cases that were scored several times, by name."""

    def add(self, result: Result) -> None:
        """Count a result."""
        if isinstance(result, Refusal):
            self.refused += 1
            self.refusals += [replace(result, raw=b"")] if len(self.refusals) < MAX_LISTED_REFUSALS else []
            self.kinds[OutcomeKind("error", "", "")] += 1
        else:
            self.add_report(result.report, result.name)

    def add_report(self, report: Report, name: str) -> None:
        """Count a report of the trace of that name."""
        self.verdicts[report.verdict] += 1
        if TRIAL in report.tags:
            self.trials[name, report.verdict] += 1
        self.rubrics[f"{report.rubric.id}@{report.rubric.version}"] += 1
        self.scores += [report.score] if report.score is not None and report.is_measured else []
        self.ranges += [report.gate_range] if report.gate_range is not None else []
        self.code_only += report.scope == "code"
        self.uncertified.update(list_uncertified(report))
        self.unforgiven += report.verdict == "undecided" and any(map(is_unforgiven, report.open))
        self.open.update({(one.criterion, explain_gap(one)) for one in report.open})
        self.kinds[OutcomeKind(report.verdict, describe_stages(report), report.tags.get("group", ""))] += 1
        self.faults.update(one.cause for one in report.open if one.cause in FAULTS)
        self.replies += report.provenance.replies
        self.cache_hits += report.provenance.cache_hits
        self.cost += Cost.read(report.provenance)
        notes = report.calibration
        self.judged.update(calibrated=notes.calibrated, uncalibrated=notes.uncalibrated, left_open=notes.left_open)

    def merge(self, other: Tally) -> None:
        """Count what another tally counted."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))
        del self.refusals[MAX_LISTED_REFUSALS:]

    @property
    def absent_judge_cause(self) -> str | None:
        """The most common cause why no question was answered, if every cause means that the judge is absent; else None."""
        if self.replies or not self.faults or not self.faults.keys() <= SETUP_CAUSES:
            return None
        return self.faults.most_common(1)[0][0]

    @property
    def mean_range(self) -> Range | None:
        """The mean score at worst and at best; None if no report has a score range."""
        size = len(self.ranges)
        low, high = (fsum(pair[end] for pair in self.ranges) for end in (0, 1))
        return (low / size, high / size) if size else None

    def list_lines(self, *, told: bool = False) -> Iterator[str]:
        """List the counts in words. `told`: the verdict of the only trace and what is open have been shown."""
        scored = self.verdicts.total()
        if scored:
            rubrics = ", ".join(sorted(self.rubrics))
            yield f"{pluralize(scored, 'trace')} scored with {rubrics}: {render_verdicts(self.verdicts)}"
        if scored > 1:
            yield f"pass rate {render_value(build_breakdown(self.kinds).passed)}; {self._describe_mean()}"
        if not told:
            yield from self._list_open_lines()
        yield from self._list_trials()
        if any(gap == NEEDS_JUDGE for _, gap in self.open):
            yield "to answer open questions, set CALLGRADE_JUDGE_MODEL; to decide by code alone, pass --judges off"
        if self.replies or self.cost != NOTHING:
            replies = pluralize(self.replies, "reply", "replies")
            yield f"judged: {replies}, {self.cache_hits} from the cache, {self.cost}"
        if self.judged.total() and not told:
            kinds = ", ".join(f"{count} {name}" for name, count in self.judged.items() if count)
            yield f"judged outcomes: {kinds}"
        if self.refused:
            yield f"not scored: {pluralize(self.refused, 'record')}"

    def _describe_mean(self) -> str:
        known, size, ends = len(self.scores), len(self.ranges), self.mean_range
        text = f"mean score {render_number(fsum(self.scores) / known)}" if known else "mean score: not measured"
        text += f" over {known} of {size} traces" if 0 < known < size else ""
        if ends is None or ends[0] == ends[1]:
            return text
        low, high = map(render_number, ends)
        return f"{text}; between {low} and {high}, depending on what was not measured"

    def _list_open_lines(self) -> Iterator[str]:
        if self.code_only:
            yield f"checked by code alone, without judges: {pluralize(self.code_only, 'trace')}"
        counts = ((f"{name} ({pluralize(count, 'trace')})", gap) for (name, gap), count in sorted(self.open.items()))
        lines = list_gaps(counts)
        yield from [f"open: {line}" for line in lines[:MAX_REASONS]]
        if len(lines) > MAX_REASONS:
            yield f"open for {len(lines) - MAX_REASONS} more reasons; see the reports"

    def _list_trials(self) -> Iterator[str]:
        """List the cases whose trials got different verdicts."""
        by_case: dict[str, Counter[Verdict]] = {}
        for (name, verdict), count in self.trials.items():
            by_case.setdefault(name, Counter())[verdict] = count
        flaky = [f"flaky: {name}: {render_verdicts(one)}" for name, one in by_case.items() if len(one) > 1]
        if by_case:
            steady = len(by_case) - len(flaky)
            yield f"{pluralize(len(by_case), 'case')} in several trials: {steady} always the same, {len(flaky)} flaky"
        yield from flaky[:MAX_FLAKY_CASES]
        if len(flaky) > MAX_FLAKY_CASES:
            yield f"and {len(flaky) - MAX_FLAKY_CASES} more flaky cases"
