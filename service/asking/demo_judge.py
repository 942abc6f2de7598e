"""A stand-in judge: rules that answer the questions of the bundled cases, so that a judged report can be seen without a key.

It checks whether numbers and names occur where they should. That proves little about traces in general (most wrong numbers
occur somewhere), so every report says that a stand-in judged, and no setting can make it the judge of a service.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic import JsonValue

from service.asking.budget.reservations import Spending
from service.core.judging.grades import CANNOT_TELL
from service.core.judging.prompts import Completion, Prompt, Usage
from service.core.report import STAND_IN

_TOKEN = re.compile(r'"token": "([^"]*)"[^\n]*\Z')
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?](?=\d)[^.!?\n]*)*[.!?]?")


class DemoJudge:
    """Answers prompts like a model, by rules. Deterministic and free."""

    async def complete(self, prompt: Prompt, spending: Spending | None = None, tenant: str = "") -> Completion:  # noqa: ARG002
        """Return the reply to a judge's prompt."""
        return Completion(json.dumps(build_reply(prompt)), STAND_IN, Usage(0, 0, 0.0))


def build_reply(prompt: Prompt) -> dict[str, JsonValue]:
    """Build the object that a judge's prompt asks for. Raises ValueError for a prompt that is not a judge's."""
    token = _TOKEN.search(prompt.turns[1].text)
    if token is None:
        raise ValueError("the prompt has no token")
    shown, _, _ = prompt.turns[1].text.partition("\n\n")
    lines = [line.partition(": ") for line in shown.splitlines()[:-1]]  # the last one is the boundary
    parts: dict[str, JsonValue] = {name: json.loads(text) for name, _, text in lines}
    schema: Any = prompt.schema["properties"]
    judges_claims = "claims" in schema
    label = (schema["claims"]["items"]["properties"] if judges_claims else schema)["label"]
    labels: list[str] = [one for one in label["enum"] if one != CANNOT_TELL]  # best first; rules can always tell
    if judges_claims:
        return {"token": token[1], "claims": list(_judge_claims(parts, labels))}
    return {"token": token[1], **_judge_call(parts, labels)}


def _judge_claims(parts: Mapping[str, JsonValue], labels: list[str]) -> Iterator[JsonValue]:
    """Judge each sentence: the best label if all its numbers occur in what was shown, else the worst."""
    known = _find_numbers([parts.get("results"), parts.get("conversation")])
    for text in _collect_texts(parts.get("said")):
        for sentence in [found.strip() for found in _SENTENCE.findall(text) if found.strip()] or [text]:
            strange = [number for number in _NUMBER.findall(sentence) if not _canonicalize(number) & known]
            label = labels[-1] if strange else labels[0]
            reason = f"{', '.join(strange)}: in no result" if strange else "its numbers are in the results"
            yield {"quote": sentence, "place": 0, "reason": reason, "label": label}


def _judge_call(parts: Mapping[str, JsonValue], labels: list[str]) -> dict[str, JsonValue]:
    """Judge a call: the worst label if it has a value that nobody gave, else the best."""
    call = parts.get("call")
    conversation = " ".join(_collect_texts(parts.get("conversation")))
    if isinstance(call, dict) and "near_misses" in parts:
        names = [tool["name"] for tool in cast("list[dict[str, JsonValue]]", parts.get("tools") or [])]
        if names and call["tool"] not in names:
            return {"quotes": [str(call["tool"])], "reason": "it is not on offer", "label": labels[-1]}
    elif isinstance(call, dict):
        known, text = _find_numbers(parts.get("conversation")), conversation.casefold()
        for value in _collect_texts(call.get("arguments")):
            numbers = _NUMBER.findall(value)
            is_known = any(_canonicalize(number) & known for number in numbers) or value.casefold() in text
            if numbers and not is_known:
                return {"quotes": [value], "reason": f"no message gave {value}", "label": labels[-1]}
    quote = max(_collect_texts(list(parts.values())), key=len, default="null")
    return {"quotes": [quote[:80]], "reason": "nothing speaks against it", "label": labels[0]}


def _find_numbers(value: JsonValue) -> set[float]:
    return {
        number for text in _collect_texts(value) for found in _NUMBER.findall(text) for number in _canonicalize(found)
    }


def _canonicalize(number: str) -> set[float]:
    """Return the number, and the same amount in hundredths."""
    plain = float(number.replace(",", ""))
    return {plain, round(plain * 100, 6)}


def _collect_texts(value: JsonValue) -> list[str]:
    """Collect every text and number inside."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in _collect_texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _collect_texts(item)]
    return [] if value is None or isinstance(value, bool) else [str(value)]
