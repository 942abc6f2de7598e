"""Find disagreements, and try other instructions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import yaml
from typer import Option

from service.asking.budget.reservations import Spending
from service.calibration.comparison import compare_sides
from service.calibration.figures import Resampling
from service.calibration.improving import (
    Cluster,
    Judged,
    Trial,
    build_proposal_prompt,
    build_side,
    find_clusters,
    pair_answers,
    read_proposal,
    run_trial,
    split_items,
)
from service.calibration.labels import LabelledItem
from service.calibration.predictions import Prediction
from service.cli import options
from service.cli.calibrating import (
    JudgedRubric,
    Labels,
    build_judge_comparison,
    build_judging_engine,
    read_labelled,
    record_look,
)
from service.cli.exits import ExitCode
from service.cli.inputs import find_rubric
from service.cli.options import read_settings
from service.cli.screen import pluralize, print_document, say
from service.core.judging.judges import Judge
from service.core.rubric import Rubric, change_rubric
from service.engine import Engine
from service.errors import InputError, JudgeError
from service.labelling.predictions import AskSettings, collect_predictions
from service.reporting.document import Section, Table

AS_IT_IS = "as it is"


def main(
    labels: Labels,
    criterion: Annotated[str, Option(metavar="ID", help="Criterion whose judge is to agree better with people.")],
    out: Annotated[Path, Option(metavar="FILE", help="Rubric file to write the better judge to.")],
    rubric: JudgedRubric = "four_step",
    candidate: Annotated[
        list[Path] | None, Option(metavar="FILE", help="Rubric file with a changed judge to try; repeatable.")
    ] = None,
    writer: Annotated[str | None, Option(metavar="MODEL", help="Model that proposes changes.")] = None,
    proposals: Annotated[int, Option(metavar="N", min=1, max=20, help="Proposals to ask for.")] = 3,
    test: Annotated[bool, Option("--test/--no-test", help="Test the best on the labels kept back.")] = True,
    output_format: options.TableOrJson = "table",
) -> int:
    """Find where a judge disagrees with people, try changed instructions, and show what the best one gains.

    Changes are tried on three fifths of the groups, and the best is tested on the others, with an interval. Each further test on
    the same labels is counted and said. Nothing is installed.
    """
    engine, _ = build_judging_engine()
    items = read_labelled(labels).labels.items
    trying = improve(
        engine, items, criterion, rubric, out, candidate or (), (writer, proposals), test=test, form=output_format
    )
    return asyncio.run(trying)


async def improve(
    engine: Engine,
    items: Sequence[LabelledItem],
    criterion: str,
    rubric_id: str,
    out: Path,
    candidates: Sequence[Path] = (),
    proposing: tuple[str | None, int] = (None, 3),
    *,
    test: bool = True,
    form: Literal["table", "json"] = "table",
) -> ExitCode:
    """Improve the judge with an engine of the caller's, which is closed at the end.

    `proposing`: the model that proposes changes, and how many. `test`: whether to look at the labels kept back.
    """
    development, kept = split_items([one for one in items if one.criterion == criterion])
    if len({one.passes for one in development}) < 2 or not kept:
        raise InputError.at("--labels", f"too few of {criterion}: both kinds are needed, in several groups")
    rubric = engine.registry.find(rubric_id)
    judge = next(
        one for one in rubric.judges if one.id == AskSettings(rubric).list_questions(development)[0].answer_id.judge
    )
    try:
        before = pair_answers(development, await _ask(engine, rubric, judge, development))
        base = run_trial(AS_IT_IS, judge, before)
        clusters = find_clusters(before, base.threshold)
        found = [
            *_read_candidates(engine, candidates, judge),
            *await _propose(engine, judge, clusters, *proposing),
        ]
        trials = [base]
        for name, candidate in found:
            judged = pair_answers(development, await _ask(engine, rubric, candidate, development))
            trials.append(run_trial(name, candidate, judged))
        best = max(trials, key=lambda one: one.kappa)
        sections = [_build_clusters(clusters, before), _build_trials(trials)]
        if best is not base and test:
            sides = [
                build_side(one, pair_answers(kept, await _ask(engine, rubric, one.judge, kept)), criterion)
                for one in (base, best)
            ]
            [compared] = compare_sides(sides[:1], sides[1:], resampling=Resampling())
            sections += build_judge_comparison(compared)
            look = 1 + record_look(read_settings().home / "fits", [f"improve {one.id}" for one in kept])
            if look > 1:
                say(f"look {look} at these test labels: what was chosen after an earlier look may only fit them better")
        print_document(sections, form, trials)
        if best is not base or not found:
            _write(best, rubric, out)
        else:
            say("no candidate agrees better with the development labels; nothing was written")
    finally:
        await engine.close()
    return ExitCode.PASSED


async def _ask(engine: Engine, rubric: Rubric, judge: Judge, items: Sequence[LabelledItem]) -> list[Prediction]:
    changed = change_rubric(rubric, judges=tuple([judge if one.id == judge.id else one for one in rubric.judges]))
    answers = [one async for one in collect_predictions(engine, items, AskSettings(changed))]
    return [one for one in answers if isinstance(one, Prediction)]


def _read_candidates(engine: Engine, files: Sequence[Path], judge: Judge) -> list[tuple[str, Judge]]:
    found: list[tuple[str, Judge]] = []
    for file in files:
        changed = find_rubric(engine.registry, file).judges_by_id.get(judge.id)
        if changed is None or changed == judge:
            raise InputError.at("--candidate", f"{file}: expected a rubric that changes the judge {judge.id}")
        found.append((file.stem, changed))
    return found


async def _propose(
    engine: Engine, judge: Judge, clusters: Sequence[Cluster], writer: str | None, number_of_proposals: int
) -> list[tuple[str, Judge]]:
    """Have a model propose changed texts; a proposal that cannot be used is said and left out."""
    if writer is None or engine.judging is None or not clusters:
        return []
    found: list[tuple[str, Judge]] = []
    for number in range(number_of_proposals):
        try:
            reply = await engine.judging.complete(build_proposal_prompt(writer, judge, clusters, number), Spending())
        except JudgeError as error:
            say(f"proposal {number + 1}: {error.reason}")
            continue
        changed = read_proposal(reply.text, judge)
        if changed is None:
            say(f"proposal {number + 1} cannot be used: it is no JSON of a question and meanings, or changes nothing")
        elif changed not in [one for _, one in found]:
            found.append((f"proposal {number + 1}", changed))
    return found


def _build_clusters(clusters: Sequence[Cluster], judged: Sequence[Judged]) -> Section:
    rows = [
        (str(cluster) if not n else "", one.item.id, _shorten(one.reason))
        for cluster in clusters
        for n, one in enumerate(cluster.examples)
    ]
    wrong = sum(one.count for one in clusters)
    head = f"Where people and the judge disagree: {wrong} of {pluralize(len(judged), 'development item')}"
    return Section(head, (Table(("disagreement", "item", "the judge's reason"), tuple(rows)),) if rows else ())


def _shorten(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:99]}\u2026"


def _build_trials(trials: Sequence[Trial]) -> Section:
    rows = [(one.name, f"{one.kappa:.3f}", f"{one.threshold:.3g}", str(one.items)) for one in trials]
    return Section("Tried on the development items", (Table(("judge", "kappa", "passes from", "items"), tuple(rows)),))


def _write(best: Trial, rubric: Rubric, out: Path) -> None:
    kept = best.judge.model_dump(mode="json", exclude_defaults=True)
    document = {"id": f"{rubric.id}_improved", "extends": rubric.id, "judges": [kept]}
    out.write_text(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100), "utf-8")
    if best.name == AS_IT_IS:
        say(
            f"wrote the judge as it is to {out}: change its question or meanings there, and try it with --candidate {out}"
        )
    else:
        say(
            f"wrote {best.name} to {out}: use it with --rubric {out}. It needs its own calibration; nothing is installed"
        )
