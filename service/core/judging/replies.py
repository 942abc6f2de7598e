"""A model's reply to a judge's question, read strictly: a verdict, or why it is none."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, fsum
from typing import Annotated, NamedTuple, cast

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from service.core.json.pointers import build_pointer, split_pointer
from service.core.json.values import format_value
from service.core.judging.prompts import Completion, Token
from service.core.judging.questions import Question
from service.core.models.kinds import FrozenModel
from service.core.results.structure import drop_passage
from service.errors import JudgeError

LONGEST = 2_000
"""Characters of a reason or quote that are kept."""

Text = Annotated[str, Field(max_length=20_000)]


VAGUE = 0.01
"""How much of the probability may lie on tokens that do not tell which label they begin."""


class _ClaimForm(FrozenModel):
    quote: Text
    reason: Text = ""
    path: Text | None = None
    label: Text


class _WholeForm(FrozenModel):
    token: Text
    reason: Text = ""
    quotes: Annotated[list[Text], Field(max_length=200)]
    label: Text


class _ClaimsForm(FrozenModel):
    token: Text
    claims: Annotated[list[_ClaimForm], Field(min_length=1, max_length=200)]


class JudgedClaim(NamedTuple):
    """One thing the text states, with its label and the pointer to what proves or refutes it."""

    quote: str
    label: str
    reason: str
    path: str | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a reply says. `value` lies in [0, 1]; `label` is the one given, or that of the worst claim."""

    label: str
    value: float
    reason: str
    quotes: tuple[str, ...] = ()
    claims: tuple[JudgedClaim, ...] = ()
    expected: bool = False
    """Whether the value is the expected one over the labels' probabilities."""


def read_judgement(completion: Completion, question: Question, token: str) -> Judgement:
    """The verdict in a reply. Reads the model's own message alone; JudgeError where it holds none that can be used."""
    if completion.refusal:
        raise JudgeError("refused", f"the model refused: {format_value(completion.refusal, 200)}")
    if completion.finish == "content_filter":
        raise JudgeError("filtered", "the provider filtered the reply")
    if completion.finish == "length":
        raise JudgeError("truncated", f"the reply was cut off at {question.judge.max_tokens} tokens")
    found = read_reply(completion.text, question, token)
    if isinstance(found, _ClaimsForm):
        return _judge_claims(found, question)
    judged = _judge_whole(found, question)
    value = _compute_expected_value(completion, question, found.label) if question.judge.logprobs else None
    return judged if value is None else Judgement(judged.label, value, judged.reason, judged.quotes, expected=True)


def read_reply(text: str, question: Question, token: str) -> _WholeForm | _ClaimsForm:
    """The reply in its own shape, with the token that was asked for."""
    document = _read_object(text)
    shape = _WHOLE if question.judge.claims == "none" else _CLAIMS
    try:
        found = shape.validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = "/".join(map(str, first["loc"])) or "the reply"
        raise JudgeError("invalid_judgement", f"{format_value(place, 120)}: {first['msg'].lower()}") from None
    if found.token != token:
        raise JudgeError("invalid_judgement", "the reply does not carry the token it was given")
    return found


_WHOLE = TypeAdapter(_WholeForm)
_CLAIMS = TypeAdapter(_ClaimsForm)

_FENCE = re.compile(r"\A```(?:json)?[ \t]*\n(.*?)\n?```\Z", re.DOTALL)


def _read_object(text: str) -> dict[str, JsonValue]:
    """The one JSON object that the text is, alone or as one fenced block. Anything beside it makes it unreadable."""
    bare = text.strip()
    fenced = _FENCE.match(bare)
    bare = fenced.group(1) if fenced else bare
    try:
        value, end = _DECODER.raw_decode(bare)
    except _TwiceError:
        raise JudgeError("invalid_judgement", "the reply gives a key twice") from None
    except (ValueError, RecursionError):
        raise JudgeError("unparseable", f"the reply is no JSON: {format_value(text, 120)}") from None
    rest = bare[end:].strip()
    if rest.startswith("{"):
        raise JudgeError("invalid_judgement", "the reply holds two verdicts")
    if rest or not isinstance(value, dict):
        raise JudgeError("unparseable", f"the reply is no single JSON object: {format_value(text, 120)}")
    return cast("dict[str, JsonValue]", value)


class _TwiceError(Exception):
    pass


def _read_unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _TwiceError
    return found


def _refuse_constant(name: str) -> JsonValue:
    raise ValueError(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_read_unique, parse_constant=_refuse_constant)


def _judge_whole(found: _WholeForm, question: Question) -> Judgement:
    scale = question.judge.scale
    if found.label not in scale:
        raise _build_menu_error(found.label, question)
    if not found.quotes:
        raise JudgeError("invalid_judgement", "the reply quotes nothing")
    _check_quotes(found.quotes, _list_haystacks(question))
    quotes = tuple([quote[:LONGEST] for quote in found.quotes])
    return Judgement(found.label, scale[found.label].value, found.reason[:LONGEST], quotes)


def _judge_claims(found: _ClaimsForm, question: Question) -> Judgement:
    scale = question.judge.scale
    hay = _list_haystacks(question)
    _check_quotes([claim.quote for claim in found.claims], hay)
    for claim in found.claims:
        if claim.label not in scale:
            raise _build_menu_error(claim.label, question)
        if claim.path is not None and not _leads_somewhere(claim.path, question):
            raise JudgeError("invalid_judgement", f"{format_value(claim.path, 120)} points at nothing that was shown")
    worst = min(found.claims, key=lambda claim: scale[claim.label].value)
    values = [scale[claim.label].value for claim in found.claims]
    value = min(values) if question.judge.claims == "worst" else fsum(values) / len(values)
    claims = tuple(
        [JudgedClaim(one.quote[:LONGEST], one.label, one.reason[:LONGEST], one.path) for one in found.claims]
    )
    return Judgement(worst.label, value, worst.reason[:LONGEST], (worst.quote[:LONGEST],), claims)


def _build_menu_error(label: str, question: Question) -> JudgeError:
    return JudgeError("invalid_judgement", f"{format_value(label, 60)} is none of {', '.join(question.judge.scale)}")


def _check_quotes(quotes: Sequence[str], hay: Sequence[str]) -> None:
    for quote in quotes:
        needle = _squeeze(quote).strip('"')
        if not needle or not any(needle in text for text in hay):
            raise JudgeError("invalid_judgement", f"{format_value(quote, 120)} is no quote of what was shown")


def _list_haystacks(question: Question) -> list[str]:
    """What was shown, in each form a model may quote it in: as sent, as JSON without escapes, and as the bare texts."""
    found: list[str] = []
    for part in question.parts:
        found += [part.text, json.dumps(part.value, ensure_ascii=False), "\n".join(_iter_texts(part.value))]
    return [_squeeze(text) for text in found]


def _iter_texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _iter_texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _iter_texts(item)
    else:
        yield json.dumps(value)


def _squeeze(text: str) -> str:
    return " ".join(text.split())


def _leads_somewhere(path: str, question: Question) -> bool:
    """Whether a pointer leads to a value of a tool's result that was shown."""
    try:
        parts = split_pointer(drop_passage(path))
    except ValueError:
        return False
    if build_pointer(*parts[:4]) not in _list_results_shown(question):
        return False
    result = question.trace.steps[int(parts[1])].result
    return result is not None and _has_value_at(result.content, parts[4:])


def _list_results_shown(question: Question) -> set[str]:
    """The paths of the results that a judge has seen."""
    parts = [part.value for part in question.parts if part.name in _WITH_RESULTS]
    events = [event for value in parts for event in (value if isinstance(value, list) else [value])]
    return {str(event["path"]) for event in events if isinstance(event, dict) and {"path", "content"} <= event.keys()}


_WITH_RESULTS = frozenset({"conversation", "turn", "result", "results"})
_INDEX = re.compile(r"0|[1-9][0-9]{0,6}")


def _has_value_at(value: JsonValue, parts: Sequence[str]) -> bool:
    for part in parts:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and _INDEX.fullmatch(part) and int(part) < len(value):
            value = value[int(part)]
        else:
            return False
    return True


def _compute_expected_value(completion: Completion, question: Question, label: str) -> float | None:
    """The mean value over the labels' probabilities, as in G-Eval (Liu et al. 2023); None where the tokens do not tell.

    Looks at the token with which the label begins: each likely token there counts for the one label it begins. A likely
    token that begins several labels ("1" of 1 and 10) tells nothing.
    """
    at = _find_token(completion.tokens, completion.text, label)
    scale = question.judge.scale
    mass: dict[str, float] = {}
    vague = 0.0
    for text, logprob in at.likeliest if at else ():
        start = text.strip(' "')
        meant = [name for name in scale if start and name.startswith(start)]
        if len(meant) == 1:
            mass[meant[0]] = mass.get(meant[0], 0.0) + exp(min(0.0, logprob))
        elif meant:
            vague += exp(min(0.0, logprob))
    total = fsum(mass.values())
    if label not in mass or total <= 0.0 or vague > VAGUE * total:
        return None
    return min(1.0, fsum([share * scale[name].value for name, share in mass.items()]) / total)


def _find_token(tokens: Sequence[Token], text: str, label: str) -> Token | None:
    """The token in which the value of `label` begins, if the tokens spell the text."""
    if "".join([token.text for token in tokens]).strip() != text.strip() or not tokens:
        return None
    whole = "".join([token.text for token in tokens])
    found = re.search(r'"label"\s*:\s*"' + re.escape(label) + '"', whole)
    if found is None:
        return None
    start, place = found.end() - len(label) - 1, 0
    for token in tokens:
        if place <= start < place + len(token.text):
            return token
        place += len(token.text)
    return None
