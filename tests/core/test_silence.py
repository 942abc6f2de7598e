"""Taking knowledge away turns no verdict green: laws over generated rubrics, requests, votes, faults and fits."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from service import Plan, Report, conclude, plan
from service.cli.commands.score import choose_code
from service.cli.tally import Tally
from service.core.criterion_results import CriterionResult, CriterionWorth
from service.core.judging.fits.fit import Fit
from service.core.judging.grades import CANNOT_TELL, Worth
from service.core.judging.judges import Ask
from service.core.judging.notes import JudgeReply, Vote
from service.core.judging.prompts import Usage
from service.core.judging.replies import Judgement
from service.core.judging.voting import is_split
from service.core.outcome import Errored
from service.core.rubric import Rubric
from service.core.scores import find_deciding_criteria, fold_results, fold_world
from service.errors import FaultCause
from service.reading.packaged_files import find_resource, read_yaml
from service.reporting.summaries import summarize_reports
from tests.bulk import examples
from tests.core.strategies import Json, requests
from tests.fits import make_fit_of

LAW = settings(
    max_examples=examples(30),
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
GREEN = ("pass", "warn")
FAULTS: Sequence[Vote] = [Errored(cause, "it broke") for cause in get_args(FaultCause)]
FOUR_STEP: Json = read_yaml(find_resource("rubrics", "four_step.yaml").read_text("utf-8"), source="four_step.yaml")  # type: ignore[assignment]
GATES = (
    "pass_rate >= 1",
    "avg_score >= 0.7",
    "min_score >= 0.7",
    "p90_score >= 0.7",
    "score >= 0.7 for at least 100% of cases",
    "integrate.score >= 0.7",
    "arguments.pass_rate >= 1",
    "criterion.schema.score >= 0.7 for at least 1% of cases",
    "argument_validation.avg_score >= 0.7",
)


@st.composite
def rubrics(draw: st.DrawFn) -> Json | str:
    """The default rubric, or one with other weights, folds, thresholds, votes and juries."""
    if draw(st.booleans()):
        return "four_step"
    made = copy.deepcopy(FOUR_STEP)
    made["id"] = "drawn"
    made["verdict"] = draw(st.sampled_from(["score", "worst_stage"]))
    fail = draw(st.sampled_from([0.3, 0.5, 0.8]))
    made["thresholds"] = {
        "fail": fail,
        "warn": min(1.0, fail + 0.1),
        "min_coverage": draw(st.sampled_from([0.0, 0.1, 0.5])),
    }
    if draw(st.booleans()):
        del made["stages"]
    for criterion in made["criteria"]:
        criterion["weight"] = draw(st.sampled_from([0.1, 1, 3]))
        criterion["must_pass"] = draw(st.booleans())
        criterion["aggregate"] = draw(st.sampled_from(["mean", "min"]))
    made["judges"] = [
        {
            "id": name,
            "level": level,
            "question": "?",
            "scale": {"good": 1.0, "fair": 0.5, "bad": 0.0},
            "threshold": draw(st.sampled_from([0.4, 0.75])),
            "votes": draw(st.sampled_from([1, 1, 2, 3])),
            "models": draw(st.sampled_from([[], ["a", "b"], ["a", "b", "c"]])),
            "combine": draw(st.sampled_from(["mean", "majority"])),
            "most_votes": draw(st.sampled_from([None, 4])),
        }
        for name, level in (("call_decision", "turn"), ("tool_selection", "step"), ("argument_plausibility", "step"))
    ]
    return made


def reply(ask: Ask, label: str, model: str, graded: float = 0.5) -> JudgeReply:
    """What a judge says; that it cannot tell, or a label that is graded otherwise than the menu has it."""
    least, most = ask.judge.ends
    said = Judgement(label, least, "too little", best=Worth(most, most))
    if label != CANNOT_TELL:
        said = Judgement(label, ask.judge.scale[label].value, "so it is", graded=graded)
    return JudgeReply(said, model, model, "miss", Usage(1, 1, None))


def votes_on(made: Plan, data: st.DataObject, *, doubt: bool = True) -> dict[str, tuple[Vote, ...]]:
    """What every judge that is asked says, further votes where the first do not agree; `doubt`: also that it cannot tell."""
    found: dict[str, tuple[Vote, ...]] = {}
    for ask in made.asks:
        labels = st.sampled_from(ask.judge.menu if doubt else [*ask.judge.scale])
        models = [one for one in ask.judge.models or ("m",) for _ in range(ask.judge.votes)]
        several = [reply(ask, data.draw(labels), one, data.draw(GRADES)) for one in models]
        if is_split(ask.judge, several):
            more = models * (ask.judge.samples // ask.judge.votes - 1)
            several += [reply(ask, data.draw(labels), one, data.draw(GRADES)) for one in more]
        found[ask.key] = tuple(several)
    return found


GRADES = st.sampled_from([0.0, 0.2, 0.5, 1.0])
LAPSES = [{"stale": True}, {"model": "other", "weights": {}}, {"enough": False}, {"judge_digest": "0" * 64}]


def broken(made: Plan, votes: Mapping[str, tuple[Vote, ...]], data: st.DataObject) -> dict[str, tuple[Vote, ...]]:
    """The same with some votes, at least one, replaced by faults, or by replies that cannot tell."""
    asks = {ask.key: ask for ask in made.asks}
    places = [(key, n) for key, several in votes.items() for n in range(len(several))]
    found = {key: [*several] for key, several in votes.items()}
    fault = data.draw(st.sampled_from([None, *FAULTS]))
    for key, n in data.draw(st.lists(st.sampled_from(places), min_size=1, max_size=4, unique=True)):
        vote = votes[key][n]
        assert isinstance(vote, JudgeReply)
        found[key][n] = fault or reply(asks[key], CANNOT_TELL, vote.model)
    return {key: tuple(several) for key, several in found.items()}


def fits_of(made: Plan, data: st.DataObject) -> list[Fit]:
    """A fit for some of the judges that are asked, with a threshold and a band of its own."""
    asked = {(ask.criterion, ask.judge.id, ask.evidence_digest): ask for ask in made.asks}
    found: list[Fit] = []
    for _, ask in sorted(asked.items()):
        if data.draw(st.booleans()):
            fit: dict[str, Any] = {"threshold": data.draw(st.sampled_from([0.3, 0.6, 0.9]))}
            fit["review_band"] = data.draw(st.sampled_from([None, (0.4, 0.6)]))
            models = ask.judge.models
            if len(models) > 1 and data.draw(st.booleans()):
                fit["weights"] = dict(zip(models, [0.75, *[0.25 / (len(models) - 1)] * 9], strict=False))
            found.append(make_fit_of(ask, **fit))
    return found


def codes_of(report: Report) -> list[int]:
    """The exit codes of a run of this trace alone, under each of the options."""
    tally = Tally()
    tally.add_report(report, "the trace")
    codes = choose_code(tally), choose_code(tally, allow_undecided=True), choose_code(tally, fail_under=0.7)
    return list(map(int, codes))


def assert_not_greener(before: Report, after: Report) -> None:
    """What may become of a report where knowledge was taken away."""
    assert before.verdict in GREEN or after.verdict not in GREEN
    stages = {stage.stage: stage.verdict for stage in before.stages}
    for stage in after.stages:
        assert stages[stage.stage] in (*GREEN, "not_applicable") or stage.verdict not in GREEN
    for code, other in zip(codes_of(before), codes_of(after), strict=True):
        assert other >= code or code == 0
    for text in GATES:
        gates = [summarize_reports([report], assertions=[text]).gate for report in (before, after)]
        assert gates[0] is not None
        assert gates[1] is not None
        assert gates[0].passed or not gates[1].passed


@LAW
@given(st.data(), requests(least=1), rubrics())
def test_a_vote_that_is_lost_turns_nothing_green(data: st.DataObject, request: Json, rubric: Any) -> None:
    made = plan({**request, "rubric": rubric})
    assume(made.asks)
    votes, fits = votes_on(made, data), fits_of(made, data)
    whole = conclude(made, votes, mode="live", fits=fits)
    assert_not_greener(whole, conclude(made, broken(made, votes, data), mode="live", fits=fits))


@LAW
@given(st.data(), requests(least=1))
def test_how_sure_a_judge_is_moves_no_score(data: st.DataObject, request: Json) -> None:
    """A judged outcome counts 1 where it passed its fit's threshold and 0 where not, however narrowly."""
    made = plan({**request, "rubric": "four_step"})
    assume(made.asks)
    fits = [fit.model_copy(update={"review_band": None}) for fit in fits_of(made, data)]
    thresholds = {(fit.criterion, fit.judge): fit.threshold or 0.0 for fit in fits}
    unsure, sure = dict[str, tuple[Vote, ...]](), dict[str, tuple[Vote, ...]]()
    for ask in made.asks:
        least = thresholds.get((ask.criterion, ask.judge.id), ask.judge.threshold)
        label, grade = data.draw(st.sampled_from([*ask.judge.scale])), data.draw(GRADES)
        unsure[ask.key] = (reply(ask, label, "m", grade),)
        sure[ask.key] = (reply(ask, label, "m", float(grade >= least)),)
    one, other = (conclude(made, votes, mode="live", fits=fits) for votes in (unsure, sure))
    assert scores_of(one) == scores_of(other)


def scores_of(report: Report) -> list[object]:
    parts = [report, *report.stages, *report.steps]
    numbers = [(part.verdict, part.score) for part in parts]
    return [*numbers, [(one.value, one.score_range, one.full_range) for one in report.criteria]]


@LAW
@given(st.data(), requests(least=1), rubrics())
def test_a_fit_that_no_longer_applies_turns_nothing_green(data: st.DataObject, request: Json, rubric: Any) -> None:
    made = plan({**request, "rubric": rubric})
    assume(made.asks)
    votes, fits = votes_on(made, data), fits_of(made, data)
    assume(fits)
    worse = data.draw(st.sampled_from(LAPSES))
    n = data.draw(st.integers(0, len(fits) - 1))
    other = [fit.model_copy(update=worse) if i == n else fit for i, fit in enumerate(fits)]
    other = [Fit.model_validate({**dict(fit), "stale": fit.stale}) for fit in other]
    assert_not_greener(conclude(made, votes, mode="live", fits=fits), conclude(made, votes, mode="live", fits=other))


@LAW
@given(st.data(), requests(least=1), rubrics())
def test_scores_stay_within_their_range_and_answers_lead_into_it(
    data: st.DataObject, request: Json, rubric: Any
) -> None:
    """The range of what is open holds what any answers come to, that of what was left out too; nothing of a judge stays open."""
    made = plan({**request, "rubric": rubric})
    votes = votes_on(made, data, doubt=False)
    silent, off, whole = conclude(made), conclude(made, mode="off"), conclude(made, votes, mode="live")
    assert not [one for one in whole.open if one.cause in get_args(FaultCause) or one.cause == "not_asked"]
    for part, known in [(silent, whole), *zip(silent.stages, whole.stages, strict=True)]:
        if part.score_range is not None and known.score is not None:
            assert part.score_range[0] - 1e-9 <= known.score <= part.score_range[1] + 1e-9
    for part, known in [(off, whole), *zip(off.stages, whole.stages, strict=True)]:
        if known.score is not None:
            assert part.full_range is not None
            assert part.full_range[0] - 1e-9 <= known.score <= part.full_range[1] + 1e-9
    for one, known in zip(off.criteria, whole.criteria, strict=True):
        if known.value is not None:
            assert one.full_range is not None
            assert one.full_range[0] - 1e-9 <= known.value <= one.full_range[1] + 1e-9
    if silent.verdict in ("pass", "warn", "fail"):
        assert whole.verdict == silent.verdict or (silent.verdict, whole.verdict) == ("warn", "pass")


@LAW
@given(st.data(), requests(least=1))
def test_a_result_that_is_wrapped_in_text_turns_nothing_green(data: st.DataObject, request: Json) -> None:
    """The same with words around the JSON of a result: code cannot read it, and no judge is asked."""
    events = request["trace"]["events"]
    results = [n for n, event in enumerate(events) if isinstance(event.get("result"), dict | list)]
    assume(results)
    n = data.draw(st.sampled_from(results))
    wrapped = copy.deepcopy(request)
    wrapped["trace"]["events"][n]["result"] = f"Here: {json.dumps(events[n]['result'])}"
    for mode in ("off", "none"):
        before, after = (conclude(plan(one), mode=mode) for one in (request, wrapped))  # type: ignore[arg-type]
        assert before.verdict in GREEN or after.verdict not in GREEN


WORTHS = st.builds(CriterionWorth, st.sampled_from([0.0, 0.3, 0.5, 0.9, 1.0]), st.booleans())


@st.composite
def open_results(draw: st.DrawFn) -> tuple[list[CriterionResult], Rubric]:
    """Criteria of a rubric, each measured, open or not there."""
    made = draw(rubrics())
    rubric = Rubric.model_validate(FOUR_STEP if isinstance(made, str) else made)
    found: list[CriterionResult] = []
    for criterion in rubric.compiled_criteria:
        best = draw(st.none() | WORTHS)
        low = best and draw(st.sampled_from([best, CriterionWorth(0.0, True), CriterionWorth(best.value / 2, True)]))
        found.append(CriterionResult(criterion, best, None if best is None else 1.0, low, best, low, best, False))
    return found, rubric


@LAW
@given(open_results())
def test_what_decides_is_what_changes_the_best_world_alone(drawn: tuple[list[CriterionResult], Rubric]) -> None:
    results, rubric = drawn
    folded = fold_results(results, rubric)
    opened = [one for one in results if one.worst != one.best]

    def ending_with(worst: CriterionResult) -> str | None:
        worths = [(one.criterion, one.worst if one is worst else one.best) for one in results]
        return fold_world([(criterion, worth) for criterion, worth in worths if worth is not None], rubric).verdict

    alone = {one.criterion.id for one in opened if ending_with(one) != folded.best}
    expected = alone or {one.criterion.id for one in opened} if folded.worst != folded.best else set()
    assert find_deciding_criteria(results, folded, rubric) == expected
