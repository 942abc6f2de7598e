"""Long texts with typed errors, one item per sentence: the accuracy task on basketball summaries (Rotowire)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from service.calibration.labels import AnnotatorLabel, LabelledItem

CONTRADICTED = frozenset({"NUMBER", "NAME", "WORD", "CONTEXT", "OTHER"})
UNCHECKED = CONTRADICTED | {"NOT_CHECKABLE"}

TEXT_FIELDS = frozenset({"summary", "cleaned_text", "detokenized_text", "shared_task_text_id"})
"""Parts of a payload that are texts about the game rather than its data."""

_SENTENCE_END = re.compile(r"(?<= [.?!]) ")
"""Texts are tokens joined by spaces, so a sentence ends in " . "."""


def read_corrections(row: Mapping[str, Any], errors: Literal["contradictory", "ungrounded"]) -> Iterator[LabelledItem]:
    """Read an item for each sentence of a text. It fails where a person found an error in it, and the note says which.

    ValueError for an error whose tokens are not in the sentence it names.
    """
    failing_types = CONTRADICTED if errors == "contradictory" else UNCHECKED
    sentences = _SENTENCE_END.split(row["response"].strip())
    notes: dict[int, list[str]] = defaultdict(list)
    for error in row["errors"]:
        number = _check_sentence(error, sentences)
        if error["TYPE"] in failing_types:
            notes[number].append(f"{error['TYPE']}: {error['TOKENS']}" + _describe_correction(error))
    payload = {name: value for name, value in row["payload"].items() if name not in TEXT_FIELDS}
    for number, sentence in enumerate(sentences, 1):
        yield LabelledItem(
            id=f"{row['id']}/{number}",
            criterion="result_groundedness",
            step="integrate",
            payload=payload,
            answer=sentence,
            labels=(
                AnnotatorLabel(
                    annotator="annotators", label=number not in notes, note="; ".join(notes.get(number, ()))
                ),
            ),
            source="rotowire",
            group=row["id"],
            family="basketball",
        )


def _check_sentence(error: Mapping[str, str], sentences: list[str]) -> int:
    """Return the number of the error's sentence."""
    number, start, end = (int(error[name]) for name in ("SENTENCE_ID", "SENT_TOKEN_START", "SENT_TOKEN_END"))
    tokens = sentences[number - 1].split()[start - 1 : end] if 0 < number <= len(sentences) else []
    if " ".join(tokens) != error["TOKENS"]:
        raise ValueError(f"{error['TOKENS']!r} does not stand at tokens {start} to {end} of sentence {number}")
    return number


def _describe_correction(error: Mapping[str, str]) -> str:
    return f" -> {error['CORRECTION']}" if error["CORRECTION"] else ""
