"""Recorded judges of D2T-Eval as live ones: what each found wrong in a text becomes a reply to our judge, and nothing else does.

The mapping knows nothing of labels. A span that contradicts the payload is a claim in the span's words, labelled `contradicted`;
one of any other type (not checkable, misleading, incoherent, repetitive, other) is a claim likewise, labelled `unsupported`:
there the judge found fault, but none that the payload speaks against. Each sentence that no span touches is a claim, `grounded`.
No other knowledge goes in, and none is left out.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from service.calibration.labels import LabelledItem
from service.calibration.predictions import MemberAnswer, Prediction
from service.core.judging.fits.fit import join_models
from service.core.judging.questions import ASSEMBLY
from service.core.judging.quoting import list_left_out
from service.registry import Registry
from tests.faults.provider import Asked, Provider

JUDGE = Registry().judges["result_groundedness"]
NAMES = ["claude-3-7-sonnet", "deepseek-r1", "gemini-2-0-flash-thinking", "gpt4o", "llama3-3", "o3-mini"]
NUMBER = re.compile(r"Item ([0-9]+)\.")

Claims = list[dict[str, Any]]


def name_model(judge: str) -> str:
    """The model of a recorded judge, as the provider names it."""
    return f"recorded-{judge}"


def read_replies(folder: Path) -> Mapping[tuple[str, str], Claims]:
    """The claims of each recorded judge (as a model) on each item."""
    with gzip.open(folder / "labels" / "groundedness_d2teval_cal.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return {
        (name_model(judge), row["id"]): list(map_spans(row["response"], _list_faults(row, spans)))
        for row in rows
        for judge, spans in row["judges"].items()
    }


class Fault(NamedTuple):
    """What a judge found wrong, in the words of the text."""

    words: str
    contradicts: bool


def _list_faults(row: Mapping[str, Any], spans: Iterable[Mapping[str, Any]]) -> list[Fault]:
    wanted = row["span_types"].index("contradictory")
    response = row["response"]
    words = [one["text"] if one["text"] in response else response[one["start"] : one["end"]] for one in spans]
    return [Fault(text, one["type"] == wanted) for text, one in zip(words, spans, strict=True)]


def map_spans(response: str, faults: Sequence[Fault]) -> Iterator[dict[str, Any]]:
    """The claims of a reply."""
    for words, contradicts in faults:
        reason = "the payload says otherwise" if contradicts else "the payload does not say so"
        label = "contradicted" if contradicts else "unsupported"
        yield {"quote": words, "place": 0, "reason": reason, "label": label}
    for sentence in list_left_out([response], [fault.words for fault in faults]):
        yield {"quote": sentence, "place": 0, "reason": "the payload says so", "label": "grounded"}


def bind(one: Prediction, route: str) -> Prediction:
    """A recorded prediction as if our judge had made it, by this way to the model."""
    bound = {"judge": JUDGE.id, "judge_digest": JUDGE.digest, "model": name_model(one.model), "assembly": ASSEMBLY}
    return one.model_copy(update={**bound, "route": route})


def bind_jury(predictions: Iterable[Prediction], route: str) -> list[Prediction]:
    """What several judges said of each item as one answer of a jury that our judge lists."""
    said: dict[str, list[Prediction]] = {}
    for one in predictions:
        said.setdefault(one.id, []).append(bind(one, route))
    return [
        several[0].model_copy(
            update={
                "model": join_models([one.model for one in several]),
                "raw": fmean([one.raw for one in several]),
                "members": tuple([MemberAnswer(model=one.model, raw=one.raw) for one in several]),
            }
        )
        for several in said.values()
    ]


def answer_as_recorded(
    provider: Provider, replies: Mapping[tuple[str, str], Claims], items: Sequence[LabelledItem]
) -> None:
    """The provider answers questions about these items, by their numbers, as the models did."""

    def reply_of(asked: Asked) -> dict[str, Any]:
        said = NUMBER.search(asked.messages[-1]["content"])
        assert said is not None
        return {"claims": replies[asked.body["model"], items[int(said[1])].id]}

    provider.reply_of = reply_of


def build_request(number: int, item: LabelledItem, models: Sequence[str] = ()) -> dict[str, Any]:
    """The item as a request; its judge lists these models, or asks the one that is set."""
    events = [
        {"user": f"Item {number}."},
        {"call": {"name": "look"}, "result": item.payload},
        {"assistant": item.answer},
    ]
    judge = JUDGE.model_copy(update={"models": tuple(f"openai/{one}" for one in models)})
    criterion = {"id": "result_groundedness", "stage": "integrate", "check": {"kind": "judge", "judge": JUDGE.id}}
    rubric = {"id": "grounded_alone", "judges": [judge.model_dump(mode="json")], "criteria": [criterion]}
    return {"rubric": rubric, "trace": {"format": "callgrade", "id": item.id, "events": events}}
