"""Labels from where people have them: exports of annotation tools and tables, as items of a labelled set.

Each tool is a function from one of its records to opinions; `READERS` tries them in order. What a person said decides in
calibration; a thumb or a correction of a user is weak evidence and is kept apart; what a model or code said is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from pydantic import JsonValue

from service.core.json.values import format_value
from service.errors import InputError

Voice = Literal["human", "weak", "other"]
"""Who speaks: a person who labels; a user's thumb or correction; a model, code or nobody known."""

Row = Mapping[str, Any]


class Opinion(NamedTuple):
    """What one annotator said of one item under one name."""

    item: str
    name: str
    """The tool's name for what was asked: a score, a key, a question."""
    annotator: str
    value: JsonValue
    voice: Voice = "human"
    note: str = ""
    group: str = ""
    shown: Row = {}
    """What the annotator was shown, where the record holds it: a trace, or `payload` and `answer`."""


PASSES = frozenset({"pass", "passed", "true", "1", "yes", "correct", "good", "ok", "up", "thumbs_up", "👍"})
FAILS = frozenset({"fail", "failed", "false", "0", "no", "incorrect", "wrong", "bad", "down", "thumbs_down", "👎"})
UNSURE = frozenset(
    {"", "unsure", "cannot_tell", "can't tell", "cannot tell", "skip", "skipped", "n/a", "unknown", "none"}
)


@dataclass(frozen=True, slots=True)
class Mapped:
    """How names and values of a tool are read."""

    criterion: str
    """The criterion of labels whose name `names` does not list."""
    names: Mapping[str, str] = field(default_factory=dict[str, str])
    """Criteria by the tool's names. If any are given, labels of other names are left out."""
    passes: Collection[str] = PASSES
    fails: Collection[str] = FAILS
    passes_from: float | None = None
    """The lowest number that passes; None: only 1 and 0 are read."""

    def find_criterion(self, name: str) -> str | None:
        """Return the criterion of a label; None if it is left out."""
        return self.names.get(name) if self.names else self.criterion

    def read_verdict(self, value: JsonValue) -> bool | None:
        """Return whether a value passes; None for one that says neither. ValueError for a value that is not known."""
        number = _read_number(value)
        if number is not None and self.passes_from is not None:
            return number >= self.passes_from
        text = "" if value is None else f"{value:g}" if isinstance(value, float) else str(value).strip().casefold()
        if text in UNSURE:
            return None
        if text in self.passes or text in self.fails:
            return text in self.passes
        way_out = "--pass and --fail" if number is None else "--passes-from"
        raise ValueError(f"{format_value(value, 60)} is neither a pass nor a fail; say which with {way_out}")


def _read_number(value: JsonValue) -> float | None:
    """Return a number, also one that a table gives as text; None for anything else."""
    try:
        return float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    except ValueError:
        return None


@dataclass(slots=True)
class ImportedLabels:
    """Items with the labels of people, those with weak labels, and what was left out."""

    human: list[dict[str, JsonValue]]
    weak: list[dict[str, JsonValue]]
    left_out: Counter[str]
    """Why labels were left out, and how many."""
    tools: Counter[str]
    """The tools whose exports were recognized."""
    verdicts: Counter[str]
    """How many labels were read as pass, and how many as fail."""


def import_labels(
    records: Iterable[tuple[str, Row]], mapped: Mapped, traces: Mapping[str, dict[str, JsonValue]]
) -> ImportedLabels:
    """Read labels from records, each with its place. `traces`: traces by id, for records that do not show what was labelled.

    InputError with the place for a record of no known tool, and for a value that says neither pass nor fail.
    """
    found = ImportedLabels([], [], Counter(), Counter(), Counter())
    items: dict[tuple[bool, str, str], dict[str, JsonValue]] = {}
    labels: dict[tuple[bool, str, str], dict[str, dict[str, JsonValue]]] = {}
    for place, record in records:
        tool, opinions = _read_record(place, record)
        found.tools[tool] += 1
        for one in opinions:
            criterion = mapped.find_criterion(one.name)
            if criterion is None or one.voice == "other":
                who = f"{one.name}: no criterion is named for it" if criterion is None else "of a model or of code"
                found.left_out[who] += 1
                continue
            try:
                verdict = mapped.read_verdict(one.value)
            except ValueError as error:
                raise InputError.at(place, f"{one.name}: {error}" if one.name else str(error)) from None
            if verdict is None:
                found.left_out["says neither pass nor fail"] += 1
                continue
            key = (one.voice == "weak", one.item, criterion)
            items.setdefault(key, _build_item(one, criterion, traces))
            label: dict[str, JsonValue] = {"annotator": one.annotator, "label": verdict}
            given = labels.setdefault(key, {})
            if one.annotator in given:
                found.left_out[f"replaced by a later one of the same annotator ({one.annotator})"] += 1
            given[one.annotator] = label | ({"note": one.note} if one.note else {})
            found.verdicts["pass" if verdict else "fail"] += 1
    for (weak, *_), item in sorted(items.items()):
        key = (weak, str(item["id"]), str(item["criterion"]))
        (found.weak if weak else found.human).append({**item, "labels": [*labels[key].values()]})
    return found


def _build_item(one: Opinion, criterion: str, traces: Mapping[str, dict[str, JsonValue]]) -> dict[str, JsonValue]:
    item: dict[str, JsonValue] = {"id": one.item, "criterion": criterion, "group": one.group or one.item}
    if one.voice == "weak":
        item["origin"] = "weak"
    shown = {"trace": traces[one.item]} if one.item in traces else one.shown
    for name in ("trace", "payload", "answer"):
        if shown.get(name) is not None:
            item[name] = shown[name]
    return item


def _read_record(place: str, record: Row) -> tuple[str, Iterator[Opinion]]:
    for tool, (fits, read) in READERS.items():
        if fits(record):
            return tool, read(record)
    accepted = "; ".join(f"{name}: {', '.join(_COLUMNS[name])}" for name in ("item", "value", "annotator", "note"))
    message = (
        f"no labels are recognized in it; known are exports of {', '.join(list(READERS)[:-1])}, and tables with columns for "
        f"item and label (name yours with --columns, as in task=item,rating=label). Accepted names: {accepted}"
    )
    raise InputError.at(place, message)


def _iter_objects(value: object) -> Iterator[Row]:
    yield from [one for one in cast("list[object]", value) if isinstance(one, dict)] if isinstance(value, list) else []


def _read_langfuse(row: Row) -> Iterator[Opinion]:
    voices: dict[str, Voice] = {"ANNOTATION": "human", "API": "weak"}
    for one in _iter_objects(row["scores"]) if "scores" in row else [row]:
        item = str(one.get("traceId") or row.get("id"))
        said = one.get("stringValue") if one.get("dataType") == "CATEGORICAL" else one.get("value")
        voice = voices.get(str(one.get("source")), "other")
        who, note = str(one.get("authorUserId") or "langfuse"), str(one.get("comment") or "")
        group = str(row.get("sessionId") or one.get("sessionId") or "")
        shown = {"trace": row} if "scores" in row else {}
        yield Opinion(item, str(one.get("name")), who, said, voice, note, group, shown)


def _read_phoenix(row: Row) -> Iterator[Opinion]:
    result = cast("Row", row.get("result") or {})
    said = result.get("label") if result.get("label") is not None else result.get("score")
    voice: Voice = "human" if row.get("annotator_kind") == "HUMAN" else "other"
    item = str(row.get("trace_id") or row.get("span_id") or row.get("session_id"))
    who = str(row.get("user_id") or row.get("identifier") or "phoenix")
    yield Opinion(item, str(row.get("name")), who, said, voice, str(result.get("explanation") or ""))


def _read_langsmith(row: Row) -> Iterator[Opinion]:
    source = cast("Row", row.get("feedback_source") or {})
    voices: dict[str, Voice] = {"app": "human", "api": "weak"}
    item = str(row.get("trace_id") or row.get("run_id"))
    said = row.get("value") if row.get("value") is not None else row.get("score")
    who = str(source.get("user_id") or source.get("user_name") or "langsmith")
    voice = voices.get(str(source.get("type")), "other")
    yield Opinion(item, str(row.get("key")), who, said, voice, str(row.get("comment") or ""))


def _read_label_studio(row: Row) -> Iterator[Opinion]:
    data = cast("Row", row.get("data") or {})
    item = str(data.get("trace_id") or data.get("id") or row.get("id"))
    for annotation in _iter_objects(row["annotations"]):
        by = annotation.get("completed_by")
        who = str(by.get("email") or by.get("id")) if isinstance(by, dict) else str(by)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        for result in _iter_objects(annotation.get("result")):
            value = cast("Row", result.get("value") or {})
            said = next(iter(value["choices"]), None) if value.get("choices") else value.get("rating")
            if not annotation.get("was_cancelled"):
                yield Opinion(item, str(result.get("from_name")), who, said, shown=data)


def _read_argilla(row: Row) -> Iterator[Opinion]:
    for name, responses in cast("Row", row["responses"]).items():
        for one in _iter_objects(responses):
            yield Opinion(str(row.get("id")), name, str(one.get("user_id")), one.get("value"), shown=row["fields"])


def _read_promptfoo(row: Row) -> Iterator[Opinion]:
    grading, response = cast("Row", row["gradingResult"] or {}), cast("Row", row.get("response") or {})
    shown = {"payload": row.get("vars"), "answer": response.get("output")}
    for one in _iter_objects(grading.get("componentResults")):
        kind = cast("Row", one.get("assertion") or {}).get("type")
        voice: Voice = "human" if kind == "human" else "other"
        reason = str(one.get("comment") or one.get("reason") or "")
        yield Opinion(str(row.get("id")), str(kind), "promptfoo", one.get("pass"), voice, reason, shown=shown)


def _read_mlflow(row: Row) -> Iterator[Opinion]:
    info = cast("Row", row["info"])
    for one in _iter_objects(info["assessments"]):
        source, feedback = cast("Row", one.get("source") or {}), cast("Row", one.get("feedback") or {})
        voice: Voice = "human" if source.get("source_type") == "HUMAN" else "other"
        item, who = str(info.get("trace_id")), str(source.get("source_id") or "mlflow")
        name, note = str(one.get("assessment_name")), str(one.get("rationale") or "")
        yield Opinion(item, name, who, feedback.get("value"), voice, note, shown={"trace": row})


_COLUMNS: dict[str, tuple[str, ...]] = {
    "item": ("trace_id", "item", "item_id", "id"),
    "name": ("criterion", "name", "key", "metric", "question"),
    "annotator": ("annotator", "annotated_by", "labeller", "labeler", "user", "user_id", "author"),
    "value": ("label", "verdict", "value", "score", "thumb", "rating"),
    "note": ("note", "comment", "reason", "explanation"),
    "group": ("group", "session_id", "conversation_id"),
}


_SHOWN = ("payload", "answer", "trace", "messages")
COLUMN_NAMES = frozenset([*_SHOWN, *[name for names in _COLUMNS.values() for name in names]])
"""The members of a table's row that are read."""


def _read_row(row: Row) -> Iterator[Opinion]:
    cells = {
        name: next((row[one] for one in names if row.get(one) is not None), None) for name, names in _COLUMNS.items()
    }
    item, name, note, group = (str(cells[one] or "") for one in ("item", "name", "note", "group"))
    who, shown = str(cells["annotator"] or "unnamed"), {"trace": row} if "messages" in row else row
    yield Opinion(item, name, who, cells["value"], note=note, group=group, shown=shown)


def _has(*names: str) -> Callable[[Row], bool]:
    return lambda row: all(name in row for name in names)


READERS: dict[str, tuple[Callable[[Row], bool], Callable[[Row], Iterator[Opinion]]]] = {
    "Langfuse": (
        lambda row: ("traceId" in row and "source" in row) or ("scores" in row and "observations" in row),
        _read_langfuse,
    ),
    "Phoenix": (_has("annotator_kind"), _read_phoenix),
    "LangSmith": (_has("key", "feedback_source"), _read_langsmith),
    "Label Studio": (_has("data", "annotations"), _read_label_studio),
    "Argilla": (_has("fields", "responses"), _read_argilla),
    "promptfoo": (_has("gradingResult"), _read_promptfoo),
    "MLflow": (lambda row: isinstance(row.get("info"), dict) and "assessments" in row["info"], _read_mlflow),
    "a table": (lambda row: all(any(one in row for one in _COLUMNS[name]) for name in ("item", "value")), _read_row),
}
"""For each tool, whether a record is one of its export, and how it is read."""
