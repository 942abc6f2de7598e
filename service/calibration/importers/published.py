"""Read labelled sets in the formats they are published in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from pydantic import ValidationError

from service.calibration.importers.actions import read_decision, read_thumb
from service.calibration.importers.gold_rows import read_answer_key, read_apibank, read_tooltalk
from service.calibration.importers.sentences import read_corrections
from service.calibration.importers.steps import read_failures, read_process
from service.calibration.labels import (
    AnnotatorLabel,
    LabelledItem,
    LabelledSet,
    build_labelled_set,
    parse_lines,
    read_labels,
)
from service.calibration.predictions import Prediction, read_predictions
from service.core.judging.grades import grade_claims
from service.core.models.validation import list_problems
from service.errors import InputError, Problem

Shape = Literal[
    "callgrade",
    "spans",
    "thumbs",
    "decisions",
    "answer_keys",
    "corrections",
    "tooltalk",
    "apibank",
    "process",
    "failures",
]
"""callgrade: our own format. spans: error spans of annotators (and judges) in a text, as in D2T-Eval and Quintd-1. thumbs: a
human reward of 0 or 1 for the next action, as in Taskmaster-4. decisions: the right one of several answers, as in When2Call.
answer_keys: questions with the calls that are due, as in BFCL. corrections: texts with typed errors, as in the Rotowire
accuracy task. process: steps of runs with the labels of judges, as in AgentProcessBench. failures: retail runs with the step
that failed, as in AgentRx. tooltalk, apibank: faultless dialogues."""
SHAPES: tuple[Shape, ...] = get_args(Shape)
Errors = Literal["contradictory", "ungrounded"]
"""Which spans fail a text: only those that contradict the payload, or also those that the payload does not support."""

_SPAN_NAMES: Mapping[Errors, frozenset[str]] = {
    "contradictory": frozenset({"contradictory", "incorrect"}),
    "ungrounded": frozenset({"contradictory", "incorrect", "not_checkable"}),
}
OTHER_SPAN_VALUE = 0.5
"""The value of a claim in which a judge found fault, but none that fails the text: as `unsupported` of `result_groundedness`."""
_SHAPE_KEYS: Mapping[Shape, frozenset[str]] = {
    "spans": frozenset({"human", "response", "span_types"}),
    "thumbs": frozenset({"human_reward", "generation"}),
    "decisions": frozenset({"correct_answer", "answers"}),
    "answer_keys": frozenset({"category", "question", "function", "possible_answer"}),
    "corrections": frozenset({"errors", "response", "payload"}),
    "tooltalk": frozenset({"conversation_id", "conversation", "suites_used"}),
    "apibank": frozenset({"file", "turns"}),
    "process": frozenset({"steps", "judges", "domain", "group"}),
    "failures": frozenset({"failures", "root_cause", "messages"}),
}


class ImportedSet(NamedTuple):
    """A labelled set with the recorded predictions of judges."""

    labels: LabelledSet
    predictions: tuple[Prediction, ...] = ()


ImportedRow = tuple[LabelledItem, tuple[Prediction, ...]]


def import_labels(
    lines: Iterable[str], *, source: str = "labels", shape: Shape | None = None, errors: Errors = "contradictory"
) -> ImportedSet:
    """Read a labelled set from JSON Lines in any shape; guessed from the first line where `shape` is None.

    InputError names the line that cannot be read and what it lacks.
    """
    kept = list(lines)
    shape = shape or guess_shape(kept)
    if shape == "callgrade":
        return _read_own(kept, source)
    numbered: list[tuple[int, LabelledItem]] = []
    predictions: list[Prediction] = []
    for line, row in parse_lines(kept):
        for item, predictions_of_item in _read_at_line(line, row, shape, errors):
            numbered.append((line, item))
            predictions += predictions_of_item
    return ImportedSet(build_labelled_set(numbered, source=source), tuple(predictions))


def _read_own(lines: Sequence[str], source: str) -> ImportedSet:
    """Read our own lines: labelled items, and predictions, which are the lines with `raw`, as over HTTP."""
    is_prediction = [_is_prediction(line) for line in lines]
    # Blank lines keep the line numbers.
    items = ["" if one else line for one, line in zip(is_prediction, lines, strict=True)]
    predictions = [line if one else "" for one, line in zip(is_prediction, lines, strict=True)]
    return ImportedSet(read_labels(items, source=source), read_predictions(predictions))


def _is_prediction(line: str) -> bool:
    if '"raw"' not in line:
        return False
    try:
        return any("raw" in row for _, row in parse_lines([line]))
    except InputError:  # reported when the line is read as an item
        return False


def guess_shape(lines: Iterable[str]) -> Shape:
    """Guess the shape from the first row."""
    first = next(parse_lines(lines), None)
    keys = first[1].keys() if first else frozenset[str]()
    matching: list[Shape] = [shape for shape, shape_keys in _SHAPE_KEYS.items() if shape_keys <= keys]
    return matching[0] if matching else "callgrade"


def _read_at_line(line: int, row: Mapping[str, Any], shape: Shape, errors: Errors) -> list[ImportedRow]:
    try:
        return list(_read(row, shape, errors))
    except KeyError as error:
        raise InputError.at(f"line {line}", f"{error.args[0]!r} is missing, which {shape} have") from None
    except ValidationError as error:
        raise InputError(
            [Problem(f"line {line}: {p.path}", p.message) for p in list_problems(error, dict(row))]
        ) from None
    except (TypeError, AttributeError, IndexError, ValueError) as error:
        raise InputError.at(f"line {line}", f"not of the shape of {shape}: {error}") from None


def _read(row: Mapping[str, Any], shape: Shape, errors: Errors) -> Iterable[ImportedRow]:
    if shape == "spans":
        return _read_spans(row, errors)
    if shape == "process":
        return read_process(row)
    items = read_corrections(row, errors) if shape == "corrections" else _READERS[shape](row)
    return ((item, ()) for item in items)


def _describe_spans(spans: Sequence[Mapping[str, Any]], failing_types: Sequence[int]) -> str:
    """Describe the spans, those that fail the text first."""
    ordered = sorted(spans, key=lambda span: span["type"] not in failing_types)
    return "; ".join([f"{span['text']!r}: {span.get('reason') or 'no reason'}" for span in ordered])


def _read_spans(row: Mapping[str, Any], errors: Errors) -> Iterator[ImportedRow]:
    """Read one text with the spans that each annotator and judge found wrong; more and worse spans lower a judge's value."""
    failing_types = [at for at, name in enumerate(row["span_types"]) if name in _SPAN_NAMES[errors]]
    if not failing_types:
        raise ValueError(f"none of the span types is {errors}")
    failing_counts = {one["annotator"]: _count_spans(one["spans"], failing_types) for one in reversed(row["human"])}
    names = dict.fromkeys(one["annotator"] for one in row["human"])
    item = LabelledItem(
        id=row["id"],
        criterion="result_groundedness",
        step="integrate",
        payload=row["payload"],
        answer=row["response"],
        labels=tuple([AnnotatorLabel(annotator=name, label=not failing_counts[name]) for name in names]),
        source=row["source"],
        group=row["payload_id"],
        stratum=f"{row['domain']}/{row['model']}",
        family=row["domain"],
    )
    yield (
        item,
        tuple(
            [
                _build_prediction(row["id"], judge, spans, failing_types)
                for judge, spans in sorted(row["judges"].items())
            ]
        ),
    )


def _build_prediction(
    name: str, judge: str, spans: list[Mapping[str, Any]], failing_types: Sequence[int]
) -> Prediction:
    """Grade the spans as claims are graded today: a span that fails the text is worth 0, any other `OTHER_SPAN_VALUE`."""
    failing = _count_spans(spans, failing_types)
    grade = grade_claims("worst", [1.0, *[0.0] * failing, *[OTHER_SPAN_VALUE] * (len(spans) - failing)])
    return Prediction(
        id=name,
        criterion="result_groundedness",
        raw=grade.graded,
        model=judge,
        reason=_describe_spans(spans, failing_types),
    )


def _count_spans(spans: Iterable[Mapping[str, Any]], failing_types: Sequence[int]) -> int:
    return sum(span["type"] in failing_types for span in spans)


_READERS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[LabelledItem]]] = {
    "thumbs": read_thumb,
    "decisions": read_decision,
    "failures": read_failures,
    "answer_keys": read_answer_key,
    "tooltalk": read_tooltalk,
    "apibank": read_apibank,
}
