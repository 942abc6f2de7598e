"""`callgrade calibrate check`: whether judges still agree with the labels as they did when they were fitted."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from service.calibrating.checking import (
    CHECK_VERSION,
    STATISTICS,
    Checked,
    CheckReport,
    checked,
    drawn,
    named,
    read_check,
)
from service.calibrating.figures import Resampling
from service.calibrating.labels import LabelledItem, LabelledSet
from service.calibrating.predictions import Prediction
from service.calibrating.results import CalibrationReport, HeldOut, JudgeReport, as_json
from service.calibrating.splits import SEED
from service.calibrating.wording import shown
from service.cli.calibrate_judge import judging_engine
from service.cli.console import console, plural, printable, say
from service.cli.exits import ExitCode
from service.cli.labelled import Sources, lines_of, read_labelled, read_run
from service.cli.sections import Section, show
from service.core.calibrate import Fit
from service.core.judged import same_model
from service.core.report import JudgeMode
from service.core.rubric import Rubric
from service.errors import InputError
from service.io.engine import Engine
from service.io.fits import read_fits
from service.io.predicting import Asking, Unanswered, judge_of, predictions_of


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which held-out items are judged again."""

    size: int = 100
    """So many for each criterion."""
    seed: str = SEED
    again: Path | None = None
    """A former check as JSON: the same items as then."""


@dataclass(frozen=True, slots=True)
class _Pinned:
    """One judge of a run, its fit and the sample of its held-out items."""

    judge: JudgeReport
    fit: Fit
    sample: Sequence[HeldOut]


def check_calibration(  # noqa: PLR0913 (one for each option)
    run: Path,
    labels: Path,
    *,
    rubric: str = "four_step",
    judges: JudgeMode = "fresh",
    sampling: Sampling | None = None,
    judge: str | None = None,
    output_format: Literal["table", "json"] = "table",
) -> ExitCode:
    """Judge a pinned sample again and compare kappa and accuracy on it with those of the run.

    2 where one fell out of the interval that it had, and which and where to is told; 5 where items were not answered.
    """
    sampling, report = sampling or Sampling(), read_run(run)
    known = read_labelled(Sources(labels)).labels
    engine, judged_by = judging_engine()
    asking = Asking(engine.shelf.find(rubric), judges)
    chosen = _chosen(report, asking.rubric, judged_by.model, judge)
    pinned = list(_pinned(chosen, _fits(run), sampling))
    items = [item for one in pinned for item in _items(known, one)]
    said, missing = asyncio.run(_said(engine, items, asking))
    found = CheckReport(
        version=CHECK_VERSION,
        source=report.source,
        seed=sampling.seed,
        judges=tuple([_checked(one, said, Resampling(max(report.draws, 200))) for one in pinned]),
    )
    _show(found, output_format)
    for reason in missing:
        say(f"not judged: {printable(reason)}")
    if found.drifted:
        return ExitCode.FAILED
    return ExitCode.DATA if missing else ExitCode.PASSED


def _chosen(report: CalibrationReport, rubric: Rubric, model: str, name: str | None) -> list[JudgeReport]:
    """The judge of the run for each criterion that the rubric has a judge for, in its very version."""
    known = [one for one in report.judges if name in (None, one.name)]
    fitting = [one for one in known if _is_of(rubric, one)]
    if not fitting:
        told = ", ".join(sorted({f"{one.name} on {one.criterion}" for one in report.judges}))
        raise InputError.at(
            "REPORT",
            f"no judge in it is one of {rubric.id} as it is now{'' if name is None else f' and {name!r}'}: {told}",
        )
    return [_one_of(fitting, criterion, model) for criterion in sorted({one.criterion for one in fitting})]


def _is_of(rubric: Rubric, judge: JudgeReport) -> bool:
    if judge.criterion not in {one.id for one in rubric.criteria}:
        return False
    known = rubric.known_judges.get(judge.judge)
    return known is not None and known.digest == judge.judge_digest and judge_of(rubric, judge.criterion) == known.id


def _one_of(judges: Sequence[JudgeReport], criterion: str, model: str) -> JudgeReport:
    own = [one for one in judges if one.criterion == criterion]
    found = own if len(own) == 1 else [one for one in own if same_model(model, one.model)]
    if len(found) == 1:
        return found[0]
    told = ", ".join(one.name for one in own)
    raise InputError.at("REPORT", f"several judges on {criterion!r}: {told}; name one with --judge")


def _fits(run: Path) -> dict[str, Fit]:
    folder = run if run.is_dir() else run.parent
    return {fit.id: fit for fit in read_fits([folder / "fits"])}


def _pinned(judges: Sequence[JudgeReport], fits: dict[str, Fit], sampling: Sampling) -> Iterator[_Pinned]:
    before = None if sampling.again is None else _read_check(sampling.again)
    for judge in judges:
        if judge.fit_id not in fits:
            raise InputError.at("REPORT", f"the folder fits beside it lacks {judge.fit_id}, which holds the map")
        yield _Pinned(judge, fits[judge.fit_id], _sample(judge, sampling, before))


def _sample(judge: JudgeReport, sampling: Sampling, before: CheckReport | None) -> Sequence[HeldOut]:
    if before is None:
        return drawn(judge, sampling.size, seed=sampling.seed)
    same = [one for one in before.judges if (one.judge, one.criterion) == (judge.name, judge.criterion)]
    if not same:
        raise InputError.at("--again", f"nothing in it is of {judge.name} on {judge.criterion!r}")
    return named(judge, same[0].items)


def _read_check(file: Path) -> CheckReport:
    try:
        return read_check("\n".join(lines_of(file, "--again")))
    except ValidationError:
        raise InputError.at(str(file), "expected what `calibrate check --format json` wrote") from None


def _items(labels: LabelledSet, pinned: _Pinned) -> Iterator[LabelledItem]:
    """The labelled items of the sample; InputError where one is gone or its label is another."""
    known = {item.id: item for item in labels.items if item.criterion == pinned.judge.criterion}
    for held in pinned.sample:
        if held.id not in known:
            raise InputError.at(
                labels.source, f"no item {held.id!r} of {pinned.judge.criterion!r}, which the run held out"
            )
        if known[held.id].passes is not held.label:
            raise InputError.at(labels.source, f"the label of {held.id!r} has changed since the run; fit again")
        yield known[held.id]


async def _said(
    engine: Engine, items: Sequence[LabelledItem], asking: Asking
) -> tuple[dict[tuple[str, str], Prediction], list[str]]:
    said: dict[tuple[str, str], Prediction] = {}
    missing: list[str] = []
    try:
        async for one in predictions_of(engine, items, asking):
            if isinstance(one, Unanswered):
                missing.append(str(one))
            else:
                said[one.id, one.criterion] = one
    finally:
        await engine.close()
    return said, missing


def _checked(pinned: _Pinned, said: dict[tuple[str, str], Prediction], resampling: Resampling) -> Checked:
    own = {name: one for (name, criterion), one in said.items() if criterion == pinned.judge.criterion}
    return checked(pinned.judge, pinned.fit, pinned.sample, own, resampling)


def _show(found: CheckReport, output_format: Literal["table", "json"]) -> None:
    if output_format == "json":
        sys.stdout.write(as_json(found).decode())
    else:
        show(console(), _sections(found))
    for one in found.judges:
        for line in _told(one):
            say(line)


def _sections(found: CheckReport) -> Iterator[Section]:
    for one in found.judges:
        rows = [(name, shown(one.then[name]), shown(one.now[name]), _side(one, name)) for name in STATISTICS]
        title = f"{one.judge} on {one.criterion}: {plural(one.n, 'item')} of {plural(one.groups, 'group')}"
        yield Section(title, ("", "then", "now", ""), tuple(rows))


def _side(one: Checked, name: str) -> str:
    return next((outside.direction for outside in one.outside if outside.statistic == name), "within")


def _told(one: Checked) -> Iterator[str]:
    for outside in one.outside:
        yield f"drift: {one.judge} on {one.criterion}: {outside}"
    others = [model for model in one.models if model != one.model]
    if others:
        yield f"{one.judge} on {one.criterion}: {', '.join(others)} answered, and no fit for {one.model} applies to that"
    if one.unanswered:
        yield f"{one.judge} on {one.criterion}: {plural(one.unanswered, 'item')} without an answer, left out on both sides"
