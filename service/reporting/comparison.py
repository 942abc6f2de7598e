"""The same cases under two models or prompts: paired differences with intervals, and the cases that changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Literal, get_args

from service.core.report import Report, RubricRef
from service.core.rubric import STAGES, Stage
from service.core.scores import Verdict
from service.errors import InputError
from service.reporting.statements import read_score
from service.reporting.summary import read_samples
from service.reporting.summary.samples import CRITERION, STAGE, Sample
from service.stats.intervals import choose_difference, choose_interval, mcnemar
from service.stats.rates import Estimate, PairedCase, RatePart, estimate

TRIAL = "trial"
"""The tag that distinguishes several runs of one case."""

Key = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class MeanChange:
    """The mean of b - a over some cases, with its 95 % interval."""

    value: float
    low: float
    high: float


RegressionStatus = Literal["within noise", "regressed", "undecided"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One number in both runs, over the `n` cases that were measured in both."""

    name: str
    a: Estimate
    b: Estimate
    measured: MeanChange | None
    n: int
    improved: int
    worsened: int
    cases: int
    """The cases that it applies to, the open ones included."""
    open: int
    """Cases that are open in one of the two runs; they count only in `worst` and `best`."""
    worst: MeanChange | None
    """b - a with everything open counted for a and against b."""
    best: MeanChange | None
    p_value: float | None
    """For passing only: the chance of a split at least as uneven as this if both were equal (McNemar's exact test). It
    assumes independent cases, so it is null where cases are grouped."""

    @property
    def status(self) -> RegressionStatus:
        """Whether b is worse: if the interval lies below 0 even at best; it is not if it does not lie below 0 at worst."""
        if self.best is not None and self.best.high < 0:
            return "regressed"
        return "undecided" if self.worst is None or self.worst.high < 0 else "within noise"


ChangeKind = Literal["newly_failing", "newly_passing", "undecided", "decided", "worse", "better", "other"]
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
"""In the order in which they are reported."""


@dataclass(frozen=True, slots=True)
class CaseSide:
    """One case in one of the two runs."""

    verdict: Verdict
    score: float | None
    first_failing_stage: Stage | None


@dataclass(frozen=True, slots=True)
class CaseChange:
    """A case that passes in one run only, or whose score changed."""

    case: str
    trial: str | None
    kind: ChangeKind
    """newly_failing, newly_passing: the verdict changed to failing, or from failing to passing. undecided: there is no verdict
    any more. decided: it passes, and had no verdict. better, worse: only the score changed."""
    a: CaseSide
    b: CaseSide
    now_failing: tuple[str, ...]
    """Criteria that fail in b only."""
    now_passing: tuple[str, ...]
    """Criteria that fail in a only."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs of the same cases. `only_a` and `only_b` are cases that the other run lacks; they count nowhere."""

    cases: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    rubrics_differ: bool
    passed: Difference
    score: Difference
    stages: tuple[Difference, ...]
    criteria: tuple[Difference, ...]
    changes: tuple[CaseChange, ...]
    """In the order of CHANGE_KINDS: first what is newly failing."""


Pairs = Sequence[tuple[Sample, Sample | None]]
"""Cases of the first run, each with the same case in the second, if that has it."""

PASSED = "passed"
"""The number of a case that is 1 where it passes."""


def compare_reports(a: Iterable[Report], b: Iterable[Report]) -> Comparison:
    """Compare two runs, paired by trace id and the tag `trial`. Pure; the order of reports does not matter.

    InputError for no report, a case without an id, for one that appears twice in a run, and for runs that share no case.
    """
    left, right = index_by_key(a, "/a"), index_by_key(b, "/b")
    shared = sorted(left.keys() & right.keys(), key=_make_sort_key)
    if not shared:
        raise InputError.at("", f"the two runs share no case; cases are paired by trace_id and the tag {TRIAL}")
    pairs = [(left[key], right[key]) for key in shared]
    found = {(STAGES.index(c.stage), c.id) for pair in pairs for sample in pair for c in sample.report.criteria}
    criteria = dict.fromkeys([name for _, name in sorted(found)])
    changes = [change for key in shared if (change := _find_change(key, left[key], right[key]))]
    return Comparison(
        cases=len(pairs),
        only_a=_list_names(left.keys() - right.keys()),
        only_b=_list_names(right.keys() - left.keys()),
        rubrics_differ=list_rubrics(left.values()) != list_rubrics(right.values()),
        passed=compute_difference(PASSED, PASSED, pairs),
        score=compute_difference("score", "score", pairs),
        stages=_compute_differences(STAGE, STAGES, pairs),
        criteria=_compute_differences(CRITERION, criteria, pairs),
        changes=tuple(sorted(changes, key=lambda one: (CHANGE_KINDS.index(one.kind), one.case, one.trial or ""))),
    )


def index_by_key(reports: Iterable[Report], place: str) -> dict[Key, Sample]:
    """Index the cases of a run by id and trial. InputError for no case, one without an id, and one that appears twice."""
    found: dict[Key, Sample] = {}
    for n, sample in enumerate(read_samples(reports)):
        case = sample.report.trace_id
        if case is None:
            raise InputError.at(f"{place}/{n}/trace_id", "a comparison pairs cases by their id, and this one has none")
        key = (case, sample.report.tags.get(TRIAL))
        if key in found:
            why = f"the case {case!r} appears twice here; tell runs apart by a tag {TRIAL}"
            raise InputError.at(f"{place}/{n}", why)
        found[key] = sample
    return found


def _make_sort_key(key: Key) -> tuple[str, str]:
    return key[0], key[1] or ""


def _list_names(keys: Iterable[Key]) -> tuple[str, ...]:
    ordered = sorted(keys, key=_make_sort_key)
    return tuple([case if trial is None else f"{case} ({TRIAL} {trial})" for case, trial in ordered])


def list_rubrics(samples: Iterable[Sample]) -> set[RubricRef]:
    """Return the rubrics that scored."""
    return {sample.report.rubric for sample in samples}


def read_case_number(sample: Sample, metric: str) -> tuple[float | None, float, float] | None:
    """Read a number of a case: over what was measured, at worst and at best. None where it does not apply."""
    if metric == PASSED:
        passed = float(sample.passed)
        found = (None, 0.0, 1.0) if sample.undecided else (passed, passed, passed)
        return found if sample.is_applicable else None
    reading = sample.read(metric)
    return None if reading is None or reading.bounds is None else (reading.value, *reading.bounds)


def _compute_differences(prefix: str, names: Iterable[str], pairs: Pairs) -> tuple[Difference, ...]:
    found = [compute_difference(name, prefix + name, pairs) for name in names]
    return tuple([one for one in found if one.cases])


def compute_difference(name: str, metric: str, pairs: Pairs) -> Difference:
    """Compare a number over the cases that it applies to; one that b lacks, or in which nothing applies any longer, is open."""
    both: list[PairedCase] = []
    at_worst: list[PairedCase] = []
    at_best: list[PairedCase] = []
    for one, other in pairs:
        is_lost = other is None or (one.is_applicable and not other.is_applicable)
        x, y = read_case_number(one, metric), (None, 0.0, 1.0) if is_lost else read_case_number(other or one, metric)
        if x is None or y is None:
            continue
        # Trials of one case are not independent either.
        trials = one.report.trace_id if TRIAL in one.report.tags else None
        group = one.group or (other.group if other else None) or trials
        at_worst.append(PairedCase(group, x[2], y[1]))
        at_best.append(PairedCase(group, x[1], y[2]))
        if x[0] is not None and y[0] is not None:
            both.append(PairedCase(group, x[0], y[0]))
    improved, worsened = sum(pair.b > pair.a for pair in both), sum(pair.b < pair.a for pair in both)
    tested = metric == PASSED and both and all(pair.group is None for pair in both)
    return Difference(
        name=name,
        a=estimate([RatePart(pair.group, pair.a) for pair in both], choose_interval),
        b=estimate([RatePart(pair.group, pair.b) for pair in both], choose_interval),
        measured=_average_change(both),
        n=len(both),
        improved=improved,
        worsened=worsened,
        cases=len(at_best),
        open=sum(worst != best for worst, best in zip(at_worst, at_best, strict=True)),
        worst=_average_change(at_worst),
        best=_average_change(at_best),
        p_value=mcnemar(worsened, improved) if tested else None,
    )


def _average_change(pairs: Sequence[PairedCase]) -> MeanChange | None:
    if not pairs:
        return None
    value, (low, high) = fsum(pair.b - pair.a for pair in pairs) / len(pairs), choose_difference(pairs)
    return MeanChange(value, min(low, value), max(high, value))


def _find_change(key: Key, a: Sample, b: Sample) -> CaseChange | None:
    failing_a, failing_b = set(a.report.failing), set(b.report.failing)
    if a.report.verdict == b.report.verdict and a.report.score == b.report.score and failing_a == failing_b:
        return None
    before, after = (CaseSide(r.verdict, read_score(r), r.first_failing_stage) for r in (a.report, b.report))
    now_failing, now_passing = sorted(failing_b - failing_a), sorted(failing_a - failing_b)
    return CaseChange(*key, _classify_change(a, b), before, after, tuple(now_failing), tuple(now_passing))


def _classify_change(a: Sample, b: Sample) -> ChangeKind:
    if a.undecided != b.undecided:
        return "undecided" if b.undecided else "decided" if b.passed else "newly_failing"
    if a.passed != b.passed:
        return "newly_passing" if b.passed else "newly_failing"
    before, after = a.report.score, b.report.score
    if before is None or after is None or before == after:
        return "other"
    return "better" if after > before else "worse"
