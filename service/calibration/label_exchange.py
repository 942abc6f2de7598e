"""Convert labels given here to and from labelled sets, and measure how far people agree."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import cast

from pydantic import JsonValue

from service.calibration.figures import Figures, Resampling, compute_human_figures
from service.calibration.labelling import cut_after, read_subject_trace
from service.calibration.labels import AnnotatorLabel, LabelledItem
from service.calibration.predictions import JudgedSet, Prediction
from service.errors import InputError
from service.intake.writing import write_record
from service.store.labelling.drafts import LabelDraft, LabelItem
from service.store.labelling.items import LabelSubject
from service.store.labelling.labels import HumanLabel
from service.store.labelling.opinions import LabelledCase


def export_case(case: LabelledCase, subject: LabelSubject) -> Iterator[bytes]:
    """Yield the lines of a labelled item: the item itself, the judges' predictions, and each labelled step as an item of its own.

    Yields nothing where the item has no document. The item itself is left out where nobody passes or fails it.
    """
    document = subject.document or _build_document(case, subject)
    if document is None:
        return
    if case.passes is not None:
        yield _write_line(document, [*case.opinions, *([case.decision] if case.decision else [])])
        for prediction in cast("list[dict[str, JsonValue]]", json.loads(case.judge.predictions) if case.judge else []):
            yield json.dumps({**prediction, "id": case.item}, ensure_ascii=False).encode() + b"\n"
    if any(one.step is not None for one in case.labels):
        yield from _export_steps(case, subject, document)


def _export_steps(case: LabelledCase, subject: LabelSubject, document: Mapping[str, JsonValue]) -> Iterator[bytes]:
    """Yield each labelled step as calibration takes it: the trace up to the step, with its run and its position there."""
    trace = None
    with suppress(InputError):
        trace = read_subject_trace(cast("JsonValue", subject.request), subject.document)
    for step in sorted({one.step for one in case.labels if one.step is not None}):
        labels = [one for one in case.labels if one.step == step and one.label != "unsure"]
        adjudication = [one for one in labels if one.source == "adjudication"][:1]
        kept = [*[one for one in labels if one.source != "adjudication"], *adjudication]
        if trace is None or step >= len(trace.steps) or not kept:
            continue
        place = {"id": f"{case.item}#{step}", "run": case.item, "position": step}
        cut = write_record(cut_after(trace, step))
        yield _write_line({**document, **place, "trace": cut}, kept)


def _write_line(document: Mapping[str, JsonValue], human_labels: Sequence[HumanLabel]) -> bytes:
    written: list[dict[str, JsonValue]] = []
    for one in human_labels:
        label: dict[str, JsonValue] = {"annotator": one.annotator, "label": one.label == "pass", "note": one.note}
        label["decides"] = one.source == "adjudication"
        written.append({name: value for name, value in label.items() if value or name == "label"})
    return json.dumps({**document, "labels": written}, ensure_ascii=False).encode() + b"\n"


def _build_document(case: LabelledCase, subject: LabelSubject) -> dict[str, JsonValue] | None:
    request, report = subject.request, subject.report or {}
    if request is None:
        return None
    tags = cast("dict[str, str]", request.get("tags") or {})
    document: dict[str, JsonValue] = {"id": case.item, "criterion": case.criterion}
    if case.stage:
        document["step"] = case.stage
    document |= {"trace": request["trace"], "source": case.labels[0].source}
    document["group"] = tags.get("group") or cast("str | None", report.get("trace_id")) or case.item
    return document | ({"stratum": tags["stratum"]} if tags.get("stratum") else {})


def build_imported(imported: JudgedSet) -> tuple[dict[tuple[str, str], tuple[LabelItem, str]], list[LabelDraft]]:
    """Build items with their documents, by id and criterion, and label drafts, both in the order of the lines."""
    by_item: dict[tuple[str, str], list[Prediction]] = {}
    for one in imported.predictions:
        by_item.setdefault((one.id, one.criterion), []).append(one)
    items: dict[tuple[str, str], tuple[LabelItem, str]] = {}
    drafts: list[LabelDraft] = []
    for item in sorted(imported.labels.items, key=lambda item: imported.labels.lines[item.key]):
        document = json.dumps(item.model_dump(mode="json", exclude_unset=True, exclude={"labels"}), ensure_ascii=False)
        label_item, recorded = LabelItem(item.criterion, item.step or ""), by_item.get(item.key)
        if recorded:
            written = json.dumps([one.model_dump(mode="json", exclude_unset=True) for one in recorded])
            first = recorded[0]
            answer = {"raw": first.raw, "threshold": first.threshold, "passed": first.passed, "predictions": written}
            label_item = replace(label_item, **answer)
        items[item.key] = label_item, document
        for label in item.labels:
            word, source = "pass" if label.label else "fail", "adjudication" if label.decides else "import"
            drafts.append(LabelDraft(item.id, item.criterion, label.annotator, word, note=label.note, source=source))
    return items, drafts


def list_step_places(imported: JudgedSet) -> dict[tuple[str, str], tuple[str, int]]:
    """For items that are steps, return run and step number by id and criterion."""
    return {item.key: (item.run, item.position) for item in imported.labels.items if item.is_step}


def measure_agreement(cases: Iterable[LabelledCase]) -> Figures | None:
    """Measure how far annotators agree on items that two or more have labelled; None where there are none."""
    items: list[LabelledItem] = []
    for case in cases:
        labels = tuple([AnnotatorLabel(annotator=one.annotator, label=one.label == "pass") for one in case.opinions])
        if labels:
            items.append(LabelledItem(id=case.item, criterion=case.criterion, group=case.item, labels=labels))
    return compute_human_figures(items, Resampling())
