"""Check for drift: judge held-out items again, and compare the agreement with labels to that of the fit."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from service.calibration.drift import CHECK_VERSION, CheckReport, JudgeDrift, check_judge, draw_sample
from service.calibration.labels import LabelledItem, LabelledSet
from service.calibration.predictions import Prediction
from service.calibration.report.wording import show_number
from service.calibration.report_predictions import UnansweredItem, list_judges
from service.calibration.results import CalibrationReport, HeldOutItem, JudgeReport, render_json
from service.calibration.splits import SEED
from service.cli.calibrating.judging import build_judging_engine
from service.cli.context import read_settings
from service.cli.interrupts import complete
from service.cli.labelled import Sources, read_labelled, read_run
from service.cli.rendering.console import build_console, pluralize, say
from service.cli.rendering.documents import show
from service.core.judging.fits import Fit
from service.core.judging.notes import is_same_model
from service.core.report import JudgeMode
from service.core.rubric import Rubric
from service.engine import Engine
from service.errors import InputError
from service.fits.checks import FitCheck, ItemizedCheck, append_checks, read_checks
from service.fits.files import get_today, read_fits
from service.predicting import AskSettings, collect_predictions
from service.reporting.document import Section, Table


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which held-out items to judge again."""

    size: int = 200
    """The number of items for each criterion."""
    seed: str = SEED


@dataclass(frozen=True, slots=True)
class _PinnedJudge:
    """A judge of a run, its fit and the sample of its held-out items."""

    judge: JudgeReport
    fit: Fit
    sample: Sequence[HeldOutItem]


def judge_again(
    run: Path, labels: Path, *, rubric: str, judges: JudgeMode, judge: str | None, sampling: Sampling
) -> tuple[CheckReport, list[str]]:
    """Judge a pinned sample again, and compare it with the run and with the checks that its folder holds.

    Return the check's report and the reasons why items were not answered. What was judged afresh is recorded in the folder.
    """
    report = read_run(run)
    known = read_labelled(Sources(labels)).labels
    engine, judged_by = build_judging_engine()
    current_rubric = engine.registry.find(rubric)
    chosen = _choose_judges(report, current_rubric, judged_by.model, judge)
    asking = AskSettings(current_rubric, judges, only={one.judge for one in chosen})
    pinned = list(_pin_judges(chosen, _read_fits(run), sampling))
    items = list({item.key: item for one in pinned for item in _list_items(known, one)}.values())
    predictions, missing = complete(_collect_predictions(engine, items, asking))
    earlier = read_checks(_find_folder(run), ItemizedCheck)
    drifts = tuple(
        [_check_one(one, predictions, [check.agreed for check in earlier.get(one.fit.id, ())]) for one in pinned]
    )
    if judges == "fresh":  # answers from the cache are those of an earlier night
        _record(
            _find_folder(run), [ItemizedCheck(**dict(_build_check(one)), agreed=dict(one.agreed)) for one in drifts]
        )
    return CheckReport(version=CHECK_VERSION, source=report.source, seed=sampling.seed, judges=drifts), missing


def _choose_judges(report: CalibrationReport, rubric: Rubric, model: str, name: str | None) -> list[JudgeReport]:
    """Choose the judges of the run that the rubric still uses, unchanged, for the same criterion."""
    known = [one for one in report.judges if name in (None, one.name)]
    fitting = [one for one in known if _is_judge_of(rubric, one)]
    if not fitting:
        judges = ", ".join(sorted({f"{one.name} on {one.criterion}" for one in report.judges}))
        raise InputError.at(
            "REPORT",
            f"no judge in it is one of {rubric.id} as it is now{'' if name is None else f' and {name!r}'}: {judges}",
        )
    pairs = sorted({(one.criterion, one.judge) for one in fitting})
    return [_choose_judge([one for one in fitting if (one.criterion, one.judge) == pair], model) for pair in pairs]


def _is_judge_of(rubric: Rubric, judge: JudgeReport) -> bool:
    if judge.criterion not in {one.id for one in rubric.criteria}:
        return False
    known = rubric.judges_by_id.get(judge.judge)
    return known is not None and known.digest == judge.judge_digest and known.id in list_judges(rubric, judge.criterion)


def _choose_judge(own: Sequence[JudgeReport], model: str) -> JudgeReport:
    """Choose the judge with this model; InputError if that leaves more than one, or none."""
    check = own if len(own) == 1 else [one for one in own if is_same_model(model, one.model)]
    if len(check) == 1:
        return check[0]
    names = ", ".join(one.name for one in own)
    raise InputError.at("REPORT", f"several judges on {own[0].criterion!r}: {names}; choose one with --judge")


def _find_folder(run: Path) -> Path:
    return run if run.is_dir() else run.parent


def _read_fits(run: Path) -> dict[str, Fit]:
    return {fit.id: fit for fit in read_fits([_find_folder(run) / "fits"])}


def _pin_judges(judges: Sequence[JudgeReport], fits: dict[str, Fit], sampling: Sampling) -> Iterator[_PinnedJudge]:
    for judge in judges:
        if judge.fit_id not in fits:
            raise InputError.at("REPORT", f"the folder fits beside it lacks {judge.fit_id}, which holds the map")
        yield _PinnedJudge(judge, fits[judge.fit_id], draw_sample(judge, sampling.size, seed=sampling.seed))


def _list_items(labels: LabelledSet, pinned: _PinnedJudge) -> Iterator[LabelledItem]:
    """Yield the labelled items of the sample; InputError if one is gone or has another label now."""
    known = {item.id: item for item in labels.items if item.criterion == pinned.judge.criterion}
    for item in pinned.sample:
        if item.id not in known:
            raise InputError.at(
                labels.source, f"no item {item.id!r} of {pinned.judge.criterion!r}, which the run held out"
            )
        if known[item.id].passes is not item.label:
            raise InputError.at(labels.source, f"the label of {item.id!r} has changed since the run; fit again")
        yield known[item.id]


async def _collect_predictions(
    engine: Engine, items: Sequence[LabelledItem], asking: AskSettings
) -> tuple[list[Prediction], list[str]]:
    predictions: list[Prediction] = []
    missing: list[str] = []
    try:
        async for one in collect_predictions(engine, items, asking):
            if isinstance(one, UnansweredItem) and one.nothing_to_ask:
                continue
            if isinstance(one, UnansweredItem):
                missing.append(str(one))
            else:
                predictions.append(one)
    finally:
        await engine.close()
    return predictions, missing


def _check_one(
    pinned: _PinnedJudge, predictions: Sequence[Prediction], earlier: Sequence[Mapping[str, bool]]
) -> JudgeDrift:
    which = pinned.judge.criterion, pinned.judge.judge
    own = {one.id: one for one in predictions if (one.criterion, one.judge) == which}
    return check_judge(pinned.judge, pinned.fit, pinned.sample, own, earlier)


def show_check(check: CheckReport, output_format: Literal["table", "json"]) -> None:
    """Write a check, and print on standard error which judges have drifted."""
    if output_format == "json":
        sys.stdout.write(render_json(check).decode())
    else:
        show(build_console(), _build_sections(check))
    for one in check.judges:
        for line in _describe_drift(one):
            say(line)


def record_installed(check: CheckReport) -> None:
    """Record the results for installed fits beside them."""
    folder = read_settings().home / "fits"
    installed = {fit.id for fit in read_fits([folder])}
    _record(folder, [_build_check(one) for one in check.judges if one.fit in installed])


def _record(folder: Path, checks: Sequence[FitCheck]) -> None:
    """Record checks; say so if the folder cannot be written."""
    try:
        append_checks(folder, checks)
    except OSError as error:
        say(f"the check is not recorded: {folder}: {error.strerror}")


def _build_check(one: JudgeDrift) -> FitCheck:
    drifted = (_describe_fall(one),) if one.drifted else ()
    return FitCheck(
        fit=one.fit, day=get_today(), items=one.n, kappa=one.now["kappa"], then=one.then["kappa"], drifted=drifted
    )


def _describe_fall(one: JudgeDrift) -> str:
    nights = "tonight" if one.fall.nights == 1 else f"on the latest {one.fall.nights} nights"
    change = f"lower by {one.fall.value:.3f}" if one.fall.value > 0 else f"higher by {-one.fall.value:.3f}"
    return f"agreement {nights} is {change} than then (drift: lower by more than {one.fall.limit:.3f})"


def _build_sections(check: CheckReport) -> Iterator[Section]:
    for one in check.judges:
        rows = [(name, show_number(one.then[name]), show_number(one.now[name])) for name in ("kappa", "accuracy")]
        title = f"{one.judge} on {one.criterion}: {pluralize(one.n, 'item')}"
        held = f"{'drifted' if one.drifted else 'held'}: {_describe_fall(one)}"
        yield Section(title, (Table(("", "then", "now"), tuple(rows)),), lines=(held,))


def _describe_drift(one: JudgeDrift) -> Iterator[str]:
    if one.drifted:
        yield f"drift: {one.judge} on {one.criterion}: {_describe_fall(one)}"
    others = [model for model in one.models if model != one.model]
    if others:
        yield f"{one.judge} on {one.criterion}: {', '.join(others)} answered; no fit for {one.model} applies to it"
    if one.unanswered:
        yield f"{one.judge} on {one.criterion}: {pluralize(one.unanswered, 'item')} without an answer, left out on both sides"
