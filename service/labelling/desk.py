"""The labelling desk that the API and the pages share. Every method waits for the database."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, cast

from pydantic import JsonValue

from service.calibration.labelling import read_subject_trace
from service.calibration.predictions import read_judged_set
from service.core.judging.judges import Judge, JudgeCheck
from service.core.rubric import Rubric
from service.engine import Engine
from service.errors import InputError, Problem
from service.reading.request import RUBRIC
from service.stats.rates import Measure
from service.store.access.audit import Actor
from service.store.database import Database
from service.store.labelling.choice import LabelChoice, LabelChooser, LabelProgress
from service.store.labelling.drafts import ImportCounts, LabelDraft, LabelSource
from service.store.labelling.items import LabelSubject
from service.store.labelling.labels import HumanLabel, JudgeWord, Labels
from service.store.labelling.opinions import LabelledCase, Opinions

Between = Literal["annotators", "judge"]
DEFAULT_RUBRIC = "four_step"


@dataclass(frozen=True, slots=True)
class OfferedLabel:
    """A label that the judge may give: its value in [0, 1], and its meaning."""

    label: str
    value: float
    means: str
    passes: bool
    """Whether the judge's own threshold passes this label."""


@dataclass(frozen=True, slots=True)
class LabelTask:
    """An item to label, without the judge's verdict."""

    item: str
    criterion: str
    stage: str
    source: LabelSource
    """Why the item is next: human, second or sample."""
    question: str | None
    """The judge's question; null if no judge of that criterion is known here."""
    labels: tuple[OfferedLabel, ...]
    request: dict[str, JsonValue] | None
    """The request as POST /v1/score takes it; null for an imported item, and if the trace was deleted."""
    document: dict[str, JsonValue] | None
    """An imported item without its labels; null for any other item."""
    progress: LabelProgress


@dataclass(frozen=True, slots=True)
class RevealedJudge:
    """The judge's verdict on an item."""

    raw: float
    value: float | None
    threshold: float | None
    passed: bool | None
    """The verdict in the report; null if the report left it undecided."""
    judge: str
    model: str
    reason: str


@dataclass(frozen=True, slots=True)
class AnnotatorAgreement:
    """How far annotators agree on a criterion, over the items that two or more of them labelled."""

    items: int
    accuracy: Measure
    """The share of equal labels."""
    kappa: Measure
    alpha: Measure


@dataclass(frozen=True, slots=True)
class CriterionLabels:
    """How far the labelling of a criterion is, and how far people agree; null if no item has two labels."""

    progress: LabelProgress
    disputed: int
    """Items on which people differ without an adjudication."""
    agreement: AnnotatorAgreement | None


@dataclass(frozen=True, slots=True)
class LabelSummary:
    """How far the labelling is, by criterion."""

    data: tuple[CriterionLabels, ...]


@dataclass(frozen=True, slots=True)
class DisputedItem:
    """An item on which people differ from each other or from the judge."""

    item: str
    criterion: str
    stage: str
    labels: tuple[HumanLabel, ...]
    judge: RevealedJudge | None


@dataclass(frozen=True, slots=True)
class LabelledPage:
    """Items in the order of their first label. `next`: pass it as `after` to go on; null at the end."""

    data: tuple[DisputedItem, ...]
    has_more: bool
    next: str | None


@dataclass(frozen=True, slots=True)
class LabelImport(ImportCounts):
    """What an import contained, and how much of it is new: an item keeps its own trace, and the predictions that it has."""

    new: ImportCounts


class LabelDesk:
    """The labelling operations over one store and one engine."""

    def __init__(self, database: Database, engine: Engine) -> None:
        self.labels = Labels(database)
        self._chooser = LabelChooser(database)
        self._opinions = Opinions(database)
        self._engine = engine

    def choose(self, tenant: str, criterion: str | None, annotator: str) -> LabelTask | None:
        """Choose what to label next; None if nothing is left.

        `criterion` None: take the one with the most items waiting for a human, then the one with the most items.
        """
        known = {} if criterion else {one.criterion: one for one in self.list_progress(tenant, annotator)}
        for one in [criterion] if criterion else known:
            choice = self._chooser.choose(tenant, one, annotator)
            if choice is not None:
                return self._build_task(tenant, choice, known.get(one) or self._chooser.measure(tenant, one, annotator))
        return None

    def open_task(self, tenant: str, item: str, criterion: str, annotator: str) -> LabelTask:
        """Return the task for an item that somebody looked up. UnknownItemError if there is no such item."""
        progress = self._chooser.measure(tenant, criterion, annotator)
        return self._build_task(tenant, LabelChoice(item, criterion, "", "direct"), progress)

    def list_progress(self, tenant: str, annotator: str, *, known: LabelProgress | None = None) -> list[LabelProgress]:
        """Measure each criterion, those with the most waiting first. `known`: a measurement to reuse."""
        progress = [
            known if known is not None and known.criterion == one else self._chooser.measure(tenant, one, annotator)
            for one in self.labels.list_criteria(tenant)
        ]
        return sorted(progress, key=lambda one: (-one.waiting, -one.items, one.criterion))

    def count_waiting(self, tenant: str) -> dict[str, int]:
        """Count, by criterion, the items that a judge left to a human and nobody has labelled."""
        return self._chooser.count_waiting(tenant)

    def reveal(self, tenant: str, item: str, criterion: str) -> RevealedJudge | None:
        """Return the judge's verdict; None if there is none."""
        return build_revealed(self.labels.read_judge(tenant, item, criterion))

    def summarize(self, tenant: str, criterion: str | None, annotator: str) -> LabelSummary:
        """Report how far each criterion is, and how far people agree on it."""
        criteria = self.labels.list_criteria(tenant) if criterion is None else (criterion,)
        return LabelSummary(tuple([self._summarize(tenant, one, annotator) for one in criteria]))

    def list_cases(self, tenant: str, criterion: str | None) -> list[LabelledCase]:
        """List the labelled items, by criterion and first label."""
        criteria = self.labels.list_criteria(tenant) if criterion is None else (criterion,)
        return [case for one in criteria for case in self._opinions.list_cases(tenant, one)]

    def list_disagreements(
        self,
        tenant: str,
        *,
        criterion: str | None = None,
        between: Between = "annotators",
        limit: int = 100,
        after: str | None = None,
    ) -> LabelledPage:
        """List items on which people differ from each other or from the judge.

        InputError for an `after` that is no item. An item that is no longer disputed still works as `after`.
        """
        cases = self.list_cases(tenant, criterion)
        if after is not None:
            cases = cases[_find_place(cases, after) + 1 :]
        matching = [one for one in cases if (one.is_disputed if between == "annotators" else one.differs_from_judge)]
        page, more = matching[:limit], len(matching) > limit
        disputed = [DisputedItem(x.item, x.criterion, x.stage, x.labels, build_revealed(x.judge)) for x in page]
        return LabelledPage(tuple(disputed), more, _name_case(page[-1]) if more else None)

    def export(self, tenant: str, criterion: str | None) -> Iterator[bytes]:
        """Yield the lines of a labelled set, reading a few items at a time."""
        from service.calibration.label_exchange import export_case  # noqa: PLC0415 (it brings numpy)

        subjects = self._opinions.read_subjects(tenant, self.list_cases(tenant, criterion))
        return (line for case, subject in subjects for line in export_case(case, subject))

    def put(self, tenant: str, draft: LabelDraft, *, by: Actor) -> HumanLabel:
        """Store a label. InputError for a step the trace does not have; UnknownItemError if there is no such item."""
        if draft.step is not None or draft.failing_step is not None:
            self._check_steps(tenant, draft)
        return self.labels.put(tenant, draft, by=by)

    def import_labels(self, tenant: str, body: bytes, *, by: Actor, annotator: str | None = None) -> LabelImport:
        """Import a labelled set, and count it.

        InputError names each bad line. `annotator`: whose labels may be replaced, besides imported ones; None:
        anybody's.
        """
        from service.calibration.label_exchange import build_imported, list_step_places  # noqa: PLC0415 (likewise)

        labelled_set = read_judged_set(body.decode("utf-8", "replace").split("\n"))
        items, drafts = build_imported(labelled_set)
        places = list_step_places(labelled_set)
        new = self.labels.import_items(tenant, items, drafts, steps=places, by=by, annotator=annotator)
        return LabelImport(len(items), len(drafts), len(labelled_set.predictions), new)

    def find_judge(self, criterion: str, subject: LabelSubject) -> Judge | None:
        """Find the judge that decides a criterion in the request's rubric; None if none is known here."""
        choice = (subject.request or {}).get("rubric", DEFAULT_RUBRIC)
        with suppress(InputError, ValueError):
            rubric: Rubric = self._engine.registry.find(RUBRIC.validate_python(choice))
            for one in rubric.criteria:
                if one.id == criterion and isinstance(one.check, JudgeCheck):
                    return rubric.judges_by_id.get(one.check.judge)
        return None

    def _build_task(self, tenant: str, choice: LabelChoice, progress: LabelProgress) -> LabelTask:
        subject = self.labels.read_subject(tenant, choice.item, choice.criterion)
        judge = self.find_judge(choice.criterion, subject)
        return LabelTask(
            choice.item,
            choice.criterion,
            choice.stage,
            choice.source,
            question=None if judge is None else judge.question,
            labels=() if judge is None else _list_offered(judge),
            request=subject.request,
            document=subject.document,
            progress=progress,
        )

    def _check_steps(self, tenant: str, draft: LabelDraft) -> None:
        subject = self.labels.read_subject(tenant, draft.item, draft.criterion)
        count = _count_steps(subject)
        steps = {"step": draft.step, "failing_step": draft.failing_step}
        wrong = [name for name, step in steps.items() if step is not None and count is not None and step >= count]
        if wrong:
            raise InputError([Problem(f"/{name}", f"the trace has {count} steps, from 0") for name in wrong])

    def _summarize(self, tenant: str, criterion: str, annotator: str) -> CriterionLabels:
        cases = self._opinions.list_cases(tenant, criterion)
        progress = self._chooser.measure(tenant, criterion, annotator)
        return CriterionLabels(progress, sum(one.is_disputed for one in cases), _measure(cases))


def _count_steps(subject: LabelSubject) -> int | None:
    """Count the steps of a trace; None if it cannot be read."""
    with suppress(InputError):
        trace = read_subject_trace(cast("JsonValue", subject.request), subject.document)
        return None if trace is None else len(trace.steps)
    return None


def _name_case(case: LabelledCase) -> str:
    return f"{case.criterion}/{case.item}"


def _find_place(cases: Sequence[LabelledCase], name: str) -> int:
    for at, case in enumerate(cases):
        if _name_case(case) == name:
            return at
    raise InputError.at("", "after: expected `next` of an answer; its item no longer has a label, so start again")


def _measure(cases: Sequence[LabelledCase]) -> AnnotatorAgreement | None:
    from service.calibration.label_exchange import measure_agreement  # noqa: PLC0415 (likewise)

    agreement = measure_agreement(cases)
    if agreement is None:
        return None
    return AnnotatorAgreement(agreement.n, *map(agreement.of, ("accuracy", "kappa", "alpha")))


def _list_offered(judge: Judge) -> tuple[OfferedLabel, ...]:
    return tuple(
        [
            OfferedLabel(name, label.value, label.means or "", label.value >= judge.threshold)
            for name, label in judge.scale.items()
        ]
    )


def build_revealed(word: JudgeWord | None) -> RevealedJudge | None:
    """Build the view of a judge's verdict."""
    if word is None:
        return None
    predictions = cast("list[dict[str, str]]", json.loads(word.predictions))
    first = predictions[0] if predictions else {}
    texts = [first.get(name, "") for name in ("judge", "model", "reason")]
    return RevealedJudge(word.raw, word.value, word.threshold, word.passed, *texts)
