"""Labelled items: the labels of annotation tools, and judges' answers about them."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer
from pydantic import JsonValue
from typer import Argument, Option

from service.calibration.label_imports import COLUMN_NAMES, FAILS, PASSES, Mapped, import_labels
from service.calibration.labels import read_labels
from service.calibration.predictions import Prediction
from service.calibration.report_predictions import UnansweredItem
from service.cli import options
from service.cli.calibrating import (
    JudgedRubric,
    Labels,
    build_judging_engine,
    collect_answers,
    naming_file,
    read_labelled,
)
from service.cli.exits import ExitCode
from service.cli.inputs import require_records
from service.cli.options import read_columns, read_settings, writing
from service.cli.screen import pluralize, say
from service.core.conclusion.judge_answers import NO_JUDGE
from service.errors import CallgradeError
from service.labelling.predictions import AskSettings
from service.reading.bare_traces import build_body
from service.reading.places import PLAIN, Layout, TraceRecord
from service.reading.records import find_traces, split_pages
from service.reading.request import check_request, read_request_trace
from service.reading.trace_files import scan_records
from service.wiring import build_limits

MAX_NAMED = 5
"""How many items a message names."""


def import_label_files(
    files: Annotated[list[Path], Argument(metavar="FILE...", help="Exports of annotation tools, or tables.")],
    out: Annotated[Path, Option(metavar="FILE", help="File to write the labelled items to, as JSON Lines.")],
    criterion: Annotated[str, Option(metavar="ID", help="Criterion of the labels.")] = "result_groundedness",
    names: Annotated[
        str | None,
        Option(metavar="NAME=ID,...", help="Criteria by the tool's names for scores; other names are left out."),
    ] = None,
    traces: Annotated[list[Path] | None, Option(metavar="FILE", help="The labelled traces, matched by id.")] = None,
    weak: Annotated[Path | None, Option(metavar="FILE", help="File for users' thumbs and corrections.")] = None,
    passes: Annotated[str | None, Option("--pass", metavar="VALUES", help="Values that pass, as in good,fine.")] = None,
    fails: Annotated[str | None, Option("--fail", metavar="VALUES", help="Values that fail.")] = None,
    passes_from: Annotated[float | None, Option(metavar="X", help="The lowest number that passes.")] = None,
    columns: Annotated[
        str | None,
        Option(metavar="COLUMN=NAME,...", help="Columns of a table, as in task=item,stars=label,by=annotator."),
    ] = None,
) -> int:
    """Read the labels of annotation tools, or a table.

    The tools are Langfuse, Phoenix, LangSmith, MLflow, Label Studio, Argilla and promptfoo. Labels of people are written to
    --out, several annotators of an item together; what a model or code said is left out. A value that is neither a pass nor a
    fail in words that are known is an error, until --pass, --fail or --passes-from says which.
    """
    mapped = Mapped(criterion, read_columns(names), _split(passes) or PASSES, _split(fails) or FAILS, passes_from)
    layout = Layout(columns=read_columns(columns))
    for column, name in layout.columns.items():
        if name not in COLUMN_NAMES:
            expected = "expected one of item, label, annotator, note, criterion, group"
            raise typer.BadParameter(f"{column}={name}: {expected}", param_hint="--columns")
    found = import_labels(_list_rows(files, layout), mapped, _read_traces(traces or ()))
    say("read as: " + ", ".join(f"{tool} ({pluralize(count, 'record')})" for tool, count in found.tools.items()))
    say(f"labels: {found.verdicts['pass']} pass, {found.verdicts['fail']} fail")
    if ties := [str(one["id"]) for one in found.human if _is_tie(one["labels"])]:
        names = ", ".join(ties[:MAX_NAMED]) + (", ..." if len(ties) > MAX_NAMED else "")
        evenly = f"{pluralize(len(ties), 'item')} with as many passes as fails"
        say(f"{evenly}, whose first label counts unless one decides: {names}")
    for why, count in found.left_out.most_common():
        say(f"left out: {pluralize(count, 'label')}, {why}")
    _write(out, found.human, "human")
    if found.weak and weak is not None:
        _write(weak, found.weak, "weak")
    elif found.weak:
        items = pluralize(len(found.weak), "item")
        say(f"left out: {items} with thumbs or corrections of users; --weak FILE keeps them")
    unseen = sum("trace" not in one and "answer" not in one for one in found.human)
    if unseen:
        say(f"{pluralize(unseen, 'item')} without a trace, so no judge can be asked; pass --traces FILE")
    return ExitCode.PASSED if found.human or (weak is not None and found.weak) else ExitCode.DATA


def _is_tie(labels: Any) -> bool:
    return 2 * sum(one["label"] for one in labels) == len(labels) and not any("decides" in one for one in labels)


def _split(names: str | None) -> frozenset[str]:
    return frozenset(one.strip().casefold() for one in (names or "").split(",") if one.strip())


def _write(file: Path, items: Sequence[dict[str, JsonValue]], kind: str) -> None:
    lines = [json.dumps(one, ensure_ascii=False) for one in items]
    if lines:
        read_labels(lines)  # what is written can be read
    with writing(file, "--out"):
        file.write_text("".join(line + "\n" for line in lines), "utf-8")
    counts = Counter(one["criterion"] for one in items)
    by_criterion = ", ".join(f"{count} of {name}" for name, count in sorted(counts.items()))
    say(f"wrote {pluralize(len(items), 'item')} with {kind} labels to {file}" + (f": {by_criterion}" if items else ""))


def _scan(files: Sequence[Path], layout: Layout) -> Iterator[TraceRecord]:
    limits = build_limits(read_settings())
    for file in files:
        yield from require_records(scan_records(file, limits=limits, layout=layout))


def _list_rows(files: Sequence[Path], layout: Layout) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for record in _scan(files, layout):
        inner = record.value.get("results")
        if isinstance(inner, dict) and isinstance(inner.get("results"), list):  # promptfoo's output file
            for index, one in enumerate(cast("list[dict[str, JsonValue]]", inner["results"])):
                yield f"{record.place} /results/results/{index}", one
            continue
        for one in require_records(split_pages([record])):
            yield str(one.place), {layout.columns.get(name, name): value for name, value in one.value.items()}


def _read_traces(files: Sequence[Path]) -> dict[str, dict[str, JsonValue]]:
    """Read traces, as a request takes them, by their ids."""
    found: dict[str, dict[str, JsonValue]] = {}
    for record in require_records(find_traces(_scan(files, PLAIN))):
        try:
            body = build_body(record, named=None, guessed=Counter())
            trace = read_request_trace(check_request(body))
            found[trace.id or str(record.place)] = cast("dict[str, JsonValue]", body["trace"])
        except CallgradeError as error:
            say(f"not read: {record.place}: {error}")
    return found


def judge_items(
    labels: Labels,
    out: Annotated[Path, Option(metavar="FILE", help="File to write the predictions to, as JSON Lines.")],
    rubric: JudgedRubric = "four_step",
    judges: Annotated[Literal["cached", "live", "fresh"], Option(help="fresh ignores cached answers.")] = "live",
    repeats: Annotated[int, Option(metavar="K", min=1, max=100, help="Answers per question, to measure noise.")] = 1,
    plugin: options.Plugin = None,
    quiet: options.Quiet = False,
) -> int:
    """Have judges answer the labelled items.

    Writes the predictions that `calibrate run` fits. You can stop it at any time: run it again, and it asks only for what is
    missing from the cache.
    """
    engine, model = build_judging_engine(plugin)
    items = read_labelled(labels).labels.items
    asking = AskSettings(engine.registry.find(rubric), judges, repeats)
    draft = out.with_name(f"{out.name}.part")
    try:
        with writing(out, "--out"), draft.open("wb") as file, naming_file(labels):
            answers = asyncio.run(collect_answers(engine, items, asking, model.model, quiet=quiet))
            found = sorted([one for one in answers if isinstance(one, Prediction)], key=lambda one: one.answer_id)
            file.writelines(one.model_dump_json().encode() + b"\n" for one in found)
        draft.replace(out)
    except KeyboardInterrupt:
        say("stopped; the cache has what was answered: run the same command again to continue")
        raise
    finally:
        draft.unlink(missing_ok=True)
    unanswered = [one for one in answers if isinstance(one, UnansweredItem)]
    judgeless = [one for one in unanswered if one.reason == NO_JUDGE]
    missing = [one for one in unanswered if not one.nothing_to_ask and one not in judgeless]
    for reason in dict.fromkeys(one.reason for one in missing):
        names = list(dict.fromkeys(one.answer_id.id for one in missing if one.reason == reason))
        more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
        say(f"not judged: {', '.join(names[:MAX_NAMED])}{more}: {reason}")
    if bare := sum(one.trace is None and one.answer is None for one in items):
        advice = "`callgrade calibrate import --traces FILE` adds traces"
        say(f"{pluralize(bare, 'item')} with neither trace nor answer: {advice}")
    if judgeless:
        say(f"{pluralize(len(judgeless), 'item')} not asked about: no judge is set up for their criteria")
    if decided := len(unanswered) - len(missing) - len(judgeless):
        say(f"{pluralize(decided, 'item')} not asked about: code decides them, or they contain no call")
    say(f"wrote {pluralize(len(found), 'prediction')} to {out}")
    return ExitCode.DATA if missing else ExitCode.PASSED
