"""What a run of scored records came to: a tally of all, and the outcomes and findings of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import fsum
from typing import NamedTuple, get_args

from service.cli.inputs import Refusal
from service.cli.rendering.console import number, plural
from service.cli.scoring import Result
from service.core.conclusion.judge_answers import NO_JUDGE
from service.core.judging.notes import sum_costs
from service.core.outcome import Errored, Finding, Outcome
from service.core.report import Report
from service.core.rubric import Stage
from service.core.scores import Range, Verdict
from service.errors import SETUP_CAUSES, FaultCause
from service.reporting.regression import is_unforgiven

VERDICTS: tuple[Verdict, ...] = ("pass", "warn", "fail", "abstain", "not_applicable")


@dataclass
class Means:
    """The mean score of a run: of what was measured, and with what is open at worst and at best."""

    measured: list[float] = field(default_factory=list[float])
    spans: list[Range] = field(default_factory=list["Range"])

    def add(self, report: Report) -> None:
        """Count one more."""
        if report.score is not None:
            self.measured.append(report.score)
        if report.score_range is not None:
            self.spans.append(report.score_range)

    @property
    def ends(self) -> Range | None:
        """The mean at worst and at best; None where nothing was measured and nothing is open."""
        if not self.spans:
            return None
        size = len(self.spans)
        return fsum(low for low, _ in self.spans) / size, fsum(high for _, high in self.spans) / size

    def __str__(self) -> str:
        mean = fsum(self.measured) / len(self.measured) if self.measured else None
        told = f"mean score {number(mean)}"
        if self.ends is None or self.ends[0] == self.ends[1]:
            return told
        return f"{told}; with what is open between {number(self.ends[0])} and {number(self.ends[1])}"


@dataclass
class Tally:
    """What a run came to."""

    verdicts: Counter[Verdict] = field(default_factory=Counter["Verdict"])
    rubrics: set[str] = field(default_factory=set[str])
    scores: Means = field(default_factory=Means)
    refused: int = 0
    code_alone: int = 0
    """Traces of which only what code decides was looked at."""
    unforgiven: int = 0
    """Abstentions that rest on something that broke, or could not be read."""
    open: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """In how many traces a criterion is open, by the reason and the criterion."""
    replies: int = 0
    hits: int = 0
    costs: list[float | None] = field(default_factory=list["float | None"])
    faults: Counter[str] = field(default_factory=Counter[str])
    """Questions that ended in a fault of a judge, by cause."""
    judged: Counter[str] = field(default_factory=Counter[str])
    """Judged outcomes, by whether they are calibrated."""
    trials: dict[str, Counter[Verdict]] = field(default_factory=dict[str, "Counter[Verdict]"])
    """The verdicts of cases that are scored several times, by name."""

    def add(self, result: Result) -> None:
        """Count one more."""
        if isinstance(result, Refusal):
            self.refused += 1
            return
        report = result.report
        self.verdicts[report.verdict] += 1
        if result.trial is not None:
            self.trials.setdefault(result.name, Counter())[report.verdict] += 1
        self.rubrics.add(f"{report.rubric.id}@{report.rubric.version}")
        self.scores.add(report)
        self.code_alone += report.scope == "code"
        self.unforgiven += report.verdict == "abstain" and any(map(is_unforgiven, report.open))
        self.open.update({(one.reason, one.criterion) for one in report.open})
        self.faults.update(one.cause for one in report.open if one.cause in FAULTS)
        self.replies += report.provenance.replies
        self.hits += report.provenance.cache_hits
        if report.provenance.replies:
            self.costs.append(report.provenance.cost_usd)
        found = report.calibration
        self.judged.update(calibrated=found.calibrated, uncalibrated=found.uncalibrated, withheld=found.withheld)

    @property
    def silent(self) -> str | None:
        """The cause for which no question was answered, where that is the same for all and no fault of theirs."""
        if self.replies or not self.faults or not self.faults.keys() <= SETUP_CAUSES:
            return None
        return self.faults.most_common(1)[0][0]

    def lines(self) -> Iterator[str]:
        """The tally in words."""
        scored = self.verdicts.total()
        counts = ", ".join(f"{self.verdicts[v]} {v}" for v in VERDICTS if self.verdicts[v])
        if scored:
            yield f"{plural(scored, 'trace')} scored with {', '.join(sorted(self.rubrics))}: {counts}"
            yield str(self.scores)
        if self.code_alone:
            yield f"judges are off: {plural(self.code_alone, 'trace')} looked at by code alone; coverage says how much that is"
        yield from self._list_flaky_lines()
        yield from self._list_open_lines()
        if self.replies:
            yield f"judged: {plural(self.replies, 'reply', 'replies')}, {self.hits} from the cache, {_render_cost(self.costs)}"
        if self.judged.total():
            kinds = ", ".join(f"{count} {name}" for name, count in self.judged.items() if count)
            yield f"judged outcomes: {kinds}"
        if self.refused:
            yield f"not scored: {plural(self.refused, 'record')}"

    def _list_flaky_lines(self) -> Iterator[str]:
        """The cases whose trials came to different verdicts."""
        flaky = {name: counts for name, counts in self.trials.items() if len(counts) > 1}
        if self.trials:
            steady = len(self.trials) - len(flaky)
            yield f"{plural(len(self.trials), 'case')} in several trials: {steady} always the same, {len(flaky)} flaky"
        for name, counts in list(flaky.items())[:MOST_FLAKY]:
            yield f"flaky: {name}: {', '.join(f'{counts[v]} {v}' for v in VERDICTS if counts[v])}"
        if len(flaky) > MOST_FLAKY:
            yield f"and {len(flaky) - MOST_FLAKY} more that are flaky"

    def _list_open_lines(self) -> Iterator[str]:
        """What nobody has decided, by reason, and what can be done about it."""
        by_reason: dict[str, list[str]] = {}
        for (reason, criterion), count in sorted(self.open.items()):
            by_reason.setdefault(reason, []).append(f"{criterion} {count}")
        for reason, criteria in list(by_reason.items())[:MOST_REASONS]:
            yield f"open, {reason}: {', '.join(criteria)}"
        if len(by_reason) > MOST_REASONS:
            yield f"open for {len(by_reason) - MOST_REASONS} more reasons, which are in the reports"
        if NO_JUDGE in by_reason:
            yield (
                "to decide it: set CALLGRADE_JUDGE_MODEL; or say what was expected (--expected) and take what code alone "
                "decides (--judges off)"
            )


MOST_REASONS = 6
"""Reasons for which something is open that are told."""

MOST_FLAKY = 20
"""Flaky cases that are named."""

FAULTS: frozenset[str] = frozenset(get_args(FaultCause))


def _render_cost(costs: Iterable[float | None]) -> str:
    cost = sum_costs(costs)
    return "at an unknown price" if cost is None else f"for ${cost:.4f}"


class CriterionOutcome(NamedTuple):
    """One outcome of a report, with its criterion and stage; `step` is None for what belongs to no step."""

    criterion: str
    stage: Stage
    step: int | None
    outcome: Outcome


def list_outcomes(report: Report) -> Iterator[CriterionOutcome]:
    """Every outcome by criterion, in the order of the contract."""
    for scored in report.criteria:
        yield from (CriterionOutcome(scored.id, scored.stage, None, elsewhere.outcome) for elsewhere in scored.outcomes)
        for step in report.steps:
            if scored.id in step.outcomes:
                yield CriterionOutcome(scored.id, scored.stage, step.index, step.outcomes[scored.id])


def list_findings(report: Report) -> list[Finding]:
    """Every finding once, the first broken step of the contract first."""
    outcomes = (one.outcome for one in list_outcomes(report))
    return list(dict.fromkeys(f for o in outcomes if not isinstance(o, Errored) for f in o.findings))
