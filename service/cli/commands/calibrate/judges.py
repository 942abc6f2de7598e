"""Judges compared: with how they answered when they were fitted, and with each other."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Literal

from typer import Argument, Option

from service.calibration import comparison
from service.calibration.drift import CHECK_VERSION, CheckReport, JudgeDrift, check_judge, draw_sample
from service.calibration.figures import HeldOutItem, Resampling
from service.calibration.labels import LabelledItem, LabelledSet
from service.calibration.report.wording import FIGURE_NAMES, show_measure, show_number
from service.calibration.report_predictions import UnansweredItem, find_check
from service.calibration.results import CalibrationReport, JudgeReport
from service.calibration.splits import SEED
from service.cli import options
from service.cli.calibrating import (
    Draws,
    JudgedRubric,
    JudgeOfRun,
    Labels,
    Run,
    build_judging_engine,
    collect_answers,
    find_folder,
    read_labelled,
    read_prediction_files,
    read_run,
)
from service.cli.exits import ExitCode
from service.cli.options import read_settings
from service.cli.screen import pluralize, print_document, say
from service.cli.sections import build_section
from service.core.judging.notes import is_same_model
from service.core.rubric import Rubric
from service.errors import InputError
from service.fits.files import get_today, read_fits
from service.fits.manager import FitCheck, ItemizedCheck, append_checks, read_checks
from service.labelling.predictions import AskSettings
from service.reporting.document import Section, Table


def check_judges(
    run: Run,
    labels: Labels,
    rubric: JudgedRubric = "four_step",
    judge: JudgeOfRun = None,
    size: Annotated[int, Option(metavar="N", min=2, help="Held-out items to judge, per criterion.")] = 200,
    plugin: options.Plugin = None,
    output_format: options.TableOrJson = "table",
    quiet: options.Quiet = False,
) -> int:
    """Judge held-out items again: did agreement fall?

    Judges a pinned sample, and exits with 2 if agreement fell by more than 0.03 and chance, with 3 if another model answered
    than the one that was fitted. Compares the run with the latest five checks of it, which its folder keeps in checks.jsonl:
    run it every night on one folder.
    """
    report, known = read_run(run), read_labelled(labels).labels
    engine, judged_by = build_judging_engine(plugin)
    current_rubric = engine.registry.find(rubric)
    chosen = _choose_judges(report, current_rubric, judged_by.model, judge)
    asking = AskSettings(current_rubric, "fresh", only={one.fit.judge for one in chosen})
    folder = find_folder(run)
    samples = [draw_sample(one, size, seed=SEED) for one in chosen]
    pairs = zip(chosen, samples, strict=True)
    items = {item.key: item for one, sample in pairs for item in _list_items(known, one.criterion, sample)}
    answers = asyncio.run(collect_answers(engine, list(items.values()), asking, judged_by.model, quiet=quiet))
    predictions = [one for one in answers if not isinstance(one, UnansweredItem)]
    missing = [one for one in answers if isinstance(one, UnansweredItem) and not one.nothing_to_ask]
    earlier, drifts = read_checks(folder, ItemizedCheck), list[JudgeDrift]()
    for one, sample in zip(chosen, samples, strict=True):
        own = {said.id: said for said in predictions if (said.criterion, said.judge) == (one.criterion, one.fit.judge)}
        nights = [check.agreed for check in earlier.get(one.fit.id, ())]
        drifts.append(check_judge(one, sample, own, nights))
    own_nights = [one for one in drifts if one.is_own]  # answers of another model say nothing of how a fit holds
    _record(folder, [ItemizedCheck(**dict(_build_check(one)), agreed=dict(one.agreed)) for one in own_nights])
    check = CheckReport(version=CHECK_VERSION, source=report.source, seed=SEED, judges=tuple(drifts))
    print_document(_build_sections(check), output_format, check)
    for line in _list_remarks(check):
        say(line)
    home = read_settings().home / "fits"
    installed = {fit.id for fit in read_fits([home])}
    _record(home, [_build_check(one) for one in own_nights if one.fit in installed])
    for reason in missing:
        say(f"not judged: {reason}")
    if check.drifted or missing:
        return ExitCode.FAILED if check.drifted else ExitCode.DATA
    return ExitCode.PASSED if len(own_nights) == len(drifts) else ExitCode.UNDECIDED


def _choose_judges(report: CalibrationReport, rubric: Rubric, model: str, name: str | None) -> list[JudgeReport]:
    """Choose the judges of the run that the rubric still uses, unchanged, for the same criterion: one for each.

    InputError if there is none, or if several remain and not exactly one has this model.
    """
    criteria = {one.id for one in rubric.criteria} & {one.criterion for one in report.judges}
    current = {(criterion, find_check(rubric, criterion).judge) for criterion in criteria}
    digests = {one: judge.digest for one, judge in rubric.judges_by_id.items()}
    named = [one for one in report.judges if name in (None, one.name) and (one.criterion, one.fit.judge) in current]
    fitting = [one for one in named if digests.get(one.fit.judge) == one.fit.judge_digest]
    if not fitting:
        judges = ", ".join(sorted({f"{one.name} on {one.criterion}" for one in report.judges}))
        also = "" if name is None else f" and {name!r}"
        raise InputError.at("RUN", f"no judge in it is one of {rubric.id} as it is now{also}: {judges}")
    chosen: list[JudgeReport] = []
    for pair in sorted({(one.criterion, one.fit.judge) for one in fitting}):
        own = [one for one in fitting if (one.criterion, one.fit.judge) == pair]
        alike = own if len(own) == 1 else [one for one in own if is_same_model(model, one.fit.model)]
        if len(alike) != 1:
            names = ", ".join(one.name for one in own)
            raise InputError.at("RUN", f"several judges on {own[0].criterion!r}: {names}; choose one with --judge")
        chosen += alike
    return chosen


def _list_items(labels: LabelledSet, criterion: str, sample: Sequence[HeldOutItem]) -> Iterator[LabelledItem]:
    """Yield the labelled items of a sample; InputError if one is gone or has another label now."""
    known = {item.id: item for item in labels.items if item.criterion == criterion}
    for item in sample:
        if item.id not in known:
            raise InputError.at(labels.source, f"no item {item.id!r} of {criterion!r}, which the run held out")
        if known[item.id].passes is not item.label:
            raise InputError.at(labels.source, f"the label of {item.id!r} has changed since the run; fit again")
        yield known[item.id]


def _build_sections(check: CheckReport) -> Iterator[Section]:
    for one in check.judges:
        rows = [(name, show_number(one.then[name]), show_number(one.now[name])) for name in ("kappa", "accuracy")]
        title = f"{one.judge} on {one.criterion}: {pluralize(one.n, 'item')}"
        change = f"{'drifted' if one.drifted else 'no drift' if one.is_own else 'another model'}: {_describe_fall(one)}"
        yield from build_section(title, ("", "then", "now"), rows, change)


def _list_remarks(check: CheckReport) -> Iterator[str]:
    """Say which judges have drifted, and whose answers do not count."""
    for one in check.judges:
        name = f"{one.judge} on {one.criterion}"
        if one.drifted:
            yield f"drift: {name}: {_describe_fall(one)}"
        if (kappa := one.now["kappa"]) is not None and kappa <= 0:
            yield f"{name}: agrees with these {pluralize(one.n, 'label')} no better than chance (kappa {kappa:.2f})"
        if others := [model for model in one.models if model != one.model]:
            answered = f"{', '.join(others)} answered"
            yield f"{name}: {answered}; no fit for {one.model} applies to it, and none records this check"
        if one.unanswered:
            yield f"{name}: {pluralize(one.unanswered, 'item')} without an answer, left out on both sides"


def _record(folder: Path, checks: Sequence[FitCheck]) -> None:
    """Record checks; say so if the folder cannot be written."""
    try:
        append_checks(folder, checks)
    except OSError as error:
        say(f"the check is not recorded: {folder}: {error.strerror}")


def _build_check(one: JudgeDrift) -> FitCheck:
    now, then = one.now["kappa"], one.then["kappa"]
    drifted = (_describe_fall(one),) if one.drifted else ()
    return FitCheck(fit=one.fit, day=get_today(), items=one.n, kappa=now, then=then, drifted=drifted)


def _describe_fall(one: JudgeDrift) -> str:
    nights = "tonight" if one.fall.nights == 1 else f"on the latest {one.fall.nights} nights"
    side = "lower" if one.fall.value > 0 else "higher"
    change = f"{side} by {abs(one.fall.value):.3f} than then" if one.fall.value else "the same as then"
    return f"agreement {nights} is {change} (drift: lower by more than {one.fall.limit:.3f})"


def compare_judges(
    a: Annotated[Path, Argument(metavar="A", help="The report.json or folder of a run, or predictions.")],
    b: Annotated[Path, Argument(metavar="B", help="The same of another judge, on the same items.")],
    labels: Annotated[Path | None, Option(metavar="FILE", help="The labelled set; required for predictions.")] = None,
    judge_a: Annotated[str | None, Option(metavar="NAME", help="Which judge of A, if it has several.")] = None,
    judge_b: Annotated[str | None, Option(metavar="NAME", help="Which judge of B, if it has several.")] = None,
    draws: Draws = 1_000,
    output_format: Annotated[Literal["table", "json", "markdown"], options.FORMAT] = "table",
) -> None:
    """Compare two judges on the same items.

    Agreement, kappa and Brier score, paired by item, and the items on which they differ.
    """
    compared = comparison.compare_sides(
        _read_sides(a, labels), _read_sides(b, labels), (judge_a, judge_b), resampling=Resampling(draws)
    )
    sections = [section for one in compared for section in _build_comparison(one)]
    print_document(sections, output_format, compared)


def _read_sides(source: Path, labels: Path | None) -> tuple[comparison.JudgeSide, ...]:
    if source.is_dir() or source.suffix == ".json":
        return comparison.read_report_sides(read_run(source))
    if labels is None:
        raise InputError.at(str(source), "comparing predictions needs labels; name them with --labels")
    return comparison.read_prediction_sides(read_labelled(labels).labels, read_prediction_files([source]))


def _build_comparison(one: comparison.JudgeComparison) -> Iterator[Section]:
    """Build a section of figures, and one for the items on which the two judges differ."""
    rows = [(FIGURE_NAMES[row.name], *map(show_measure, (row.a, row.b, row.difference))) for row in one.figures]
    independent = ", for items that were independent" if one.groups < one.items else ""
    right = f"both right {one.both_right}, a alone {one.a_right}, b alone {one.b_right}, neither {one.neither_right}"
    lines = [
        f"{pluralize(one.items, 'item')} of {pluralize(one.groups, 'group')}; intervals at 95 % by groups, both sides together",
        f"{right}; McNemar's exact test: p = {one.p_value:.3g}{independent}",
    ]
    for side, count in (("a", one.only_a), ("b", one.only_b)):
        lines += [f"only in {side}, not counted: {pluralize(count, 'item')}"] if count else []
    title = f"{one.b} against {one.a} on {one.criterion}"
    yield Section(title, (Table(("", "a", "b", "b - a"), tuple(rows)),), tuple(lines))
    differing = [
        (x.id, "pass" if x.label else "fail", f"{x.a:.3f}", f"{x.b:.3f}", "b" if x.b_is_right else "a")
        for x in one.differing
    ]
    differ = f"Where they differ: {pluralize(len(one.differing), 'item')}"
    yield from build_section(differ, ("item", "label", "a", "b", "right"), differing)
