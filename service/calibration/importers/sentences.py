"""Long texts with typed errors, sentence by sentence: the accuracy task on basketball summaries (Rotowire)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from service.calibration.labels import AnnotatorLabel, LabelledItem

CONTRADICTED = frozenset({"NUMBER", "NAME", "WORD", "CONTEXT", "OTHER"})
UNCHECKED = CONTRADICTED | {"NOT_CHECKABLE"}

TOLD_IN_WORDS = frozenset({"summary", "cleaned_text", "detokenized_text", "shared_task_text_id"})
"""Parts of a payload that are no data of the game but texts about it."""

_END = re.compile(r"(?<= [.?!]) ")
"""Texts come as tokens with spaces between them."""


def read_corrections(row: Mapping[str, Any], errors: Literal["contradictory", "ungrounded"]) -> Iterator[LabelledItem]:
    """An item for each sentence of a text. It fails where a person found an error in it, and the note says which.

    ValueError for an error that does not stand in the sentence it names.
    """
    wanted = CONTRADICTED if errors == "contradictory" else UNCHECKED
    sentences = _END.split(row["response"].strip())
    found: dict[int, list[str]] = defaultdict(list)
    for error in row["errors"]:
        number = _check_sentence(error, sentences)
        if error["TYPE"] in wanted:
            found[number].append(f"{error['TYPE']}: {error['TOKENS']}" + _describe_correction(error))
    payload = {name: value for name, value in row["payload"].items() if name not in TOLD_IN_WORDS}
    for number, sentence in enumerate(sentences, 1):
        yield LabelledItem(
            id=f"{row['id']}/{number}",
            criterion="grounded",
            step="integrate",
            payload=payload,
            answer=sentence,
            labels=(
                AnnotatorLabel(
                    annotator="annotators", label=number not in found, note="; ".join(found.get(number, ()))
                ),
            ),
            source="rotowire",
            group=row["id"],
            family="basketball",
        )


def _check_sentence(error: Mapping[str, str], sentences: list[str]) -> int:
    """The number of its sentence."""
    number, start, end = (int(error[name]) for name in ("SENTENCE_ID", "SENT_TOKEN_START", "SENT_TOKEN_END"))
    tokens = sentences[number - 1].split()[start - 1 : end] if 0 < number <= len(sentences) else []
    if " ".join(tokens) != error["TOKENS"]:
        raise ValueError(f"{error['TOKENS']!r} does not stand at tokens {start} to {end} of sentence {number}")
    return number


def _describe_correction(error: Mapping[str, str]) -> str:
    return f" -> {error['CORRECTION']}" if error["CORRECTION"] else ""
