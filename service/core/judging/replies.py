"""Read a model's reply to a judge's question strictly: either a verdict, or a JudgeError that says why not."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import exp, fsum
from typing import Annotated, NamedTuple, cast

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from service.core.json.values import format_value
from service.core.judging.grades import CANNOT_TELL, Worth, grade_claims, shade_value
from service.core.judging.judges import Judge
from service.core.judging.prompts import Completion, Token
from service.core.judging.questions import Question
from service.core.judging.quoting import WITH_RESULTS, list_left_out
from service.core.models.kinds import FrozenModel
from service.errors import JudgeError

MAX_QUOTE_CHARS = 2_000
"""Characters kept of a reason or quote."""

Text = Annotated[str, Field(max_length=20_000)]


class _ClaimForm(FrozenModel):
    quote: Text
    place: Annotated[int, Field(ge=0, strict=True)] | None = None
    reason: Text = ""
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
    """One statement of the text, with its label and the pointer to what proves or refutes it."""

    quote: str
    label: str
    reason: str
    path: str | None


@dataclass(frozen=True, slots=True)
class Judgement:
    """The content of a reply. `value` lies in [0, 1]; `label` is the one given, or that of the claim that stands for it.

    A judgement is open if it cannot tell about the whole or some claims, or leaves out text that it should judge. `value`
    and `graded` are then the worst case, and `best` is the best case.
    """

    label: str
    value: float
    reason: str
    quotes: tuple[str, ...] = ()
    claims: tuple[JudgedClaim, ...] = ()
    expected: bool = False
    """Whether the value is the expectation over the labels' probabilities."""
    graded: float | None = None
    """The value in [0, 1] by everything it says, which fits take as input; None: equal to `value`."""
    best: Worth | None = None
    """The worth with everything open at its best; None if nothing is open."""
    left_out: tuple[str, ...] = ()
    """The sentences that no claim quotes."""

    @property
    def low(self) -> Worth:
        """The worth with everything open at its worst."""
        return Worth(self.value, self.value if self.graded is None else self.graded)

    @property
    def high(self) -> Worth:
        """The worth with everything open at its best."""
        return self.low if self.best is None else self.best


def read_judgement(completion: Completion, question: Question, token: str) -> Judgement:
    """Read the verdict from the model's own message. Raise JudgeError if it holds no usable one."""
    found = read_reply(completion.text, question, token)
    if isinstance(found, _ClaimsForm):
        return _read_claims(found, question, completion)
    judged = _read_whole(found, question)
    if found.label == CANNOT_TELL or not question.judge.logprobs:
        return judged
    [value] = read_likely_values(completion, question.judge, [found.label]) or [None]
    return judged if value is None else replace(judged, value=value, expected=True)


def read_reply(text: str, question: Question, token: str) -> _WholeForm | _ClaimsForm:
    """Parse the reply into its form and check its token. Raise JudgeError if either is wrong."""
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
    """Parse the text as one JSON object, bare or in one fenced block. Raise JudgeError if there is anything beside it."""
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


def _read_whole(form: _WholeForm, question: Question) -> Judgement:
    judge = question.judge
    _check_label(form.label, judge)
    check_quotes(form.quotes, question)
    if form.label != CANNOT_TELL and not any(_is_evidence(quote, question) for quote in form.quotes):
        words = "nothing but single words" if form.quotes else "nothing"
        raise JudgeError("invalid_judgement", f"the reply quotes {words}")
    return judge_whole(form.label, form.reason, form.quotes, judge)


def judge_whole(label: str, reason: str, quotes: Sequence[str], judge: Judge) -> Judgement:
    """Build the judgement of one label for the whole; it must be one of the judge's."""
    worst, best = judge.ends
    short = tuple([quote[:MAX_QUOTE_CHARS] for quote in quotes])
    if label == CANNOT_TELL:
        return Judgement(CANNOT_TELL, worst, reason[:MAX_QUOTE_CHARS], short, best=Worth(best, best))
    return Judgement(label, judge.scale[label].value, reason[:MAX_QUOTE_CHARS], short)


def _read_claims(form: _ClaimsForm, question: Question, completion: Completion) -> Judgement:
    judge = question.judge
    check_quotes([claim.quote for claim in form.claims], question)
    for claim in form.claims:
        _check_label(claim.label, judge)
        if (claim.place or 0) > len(question.places):
            reason = f"place {format_value(claim.place, 20)} is none of the {len(question.places)} in `places`"
            raise JudgeError("invalid_judgement", reason)
    likely = read_likely_values(completion, judge, [claim.label for claim in form.claims]) if judge.logprobs else None
    places = [question.places[claim.place - 1] if claim.place else None for claim in form.claims]
    claims = [
        JudgedClaim(claim.quote, claim.label, claim.reason, None if place is None else place.pointer)
        for claim, place in zip(form.claims, places, strict=True)
    ]
    return judge_claims(claims, question, likely)


def judge_claims(
    given: Sequence[JudgedClaim], question: Question, likely: Sequence[float | None] | None = None
) -> Judgement:
    """Build the judgement of at least one claim; their labels must be the judge's. `likely`: as `weigh_labels` takes it."""
    judge = question.judge
    left_out = list_left_out(question.judged_texts, [claim.quote for claim in given])
    claims = [_open_unseen(claim, question) for claim in given]
    if likely is not None:
        each = zip(likely, claims, given, strict=True)
        likely = [value if claim.label == before.label else None for value, claim, before in each]
    low, high = weigh_labels(judge, [claim.label for claim in claims], likely, unquoted=len(left_out))
    best, short = None if low == high else high, tuple([sentence[:MAX_QUOTE_CHARS] for sentence in left_out])
    one = _find_spokesman(claims, judge)
    return Judgement(
        one.label, low.value, one.reason, (one.quote,), tuple(claims), graded=low.graded, best=best, left_out=short
    )


def _open_unseen(given: JudgedClaim, question: Question) -> JudgedClaim:
    """Shorten a claim, and leave it open if it fails by what was shown in part: what was left out may support it.

    It fails only by a value that it refers to and that was shown in full.
    """
    judge, whole = question.judge, {place.pointer for place in question.places if place.whole}
    claim = given._replace(quote=given.quote[:MAX_QUOTE_CHARS], reason=given.reason[:MAX_QUOTE_CHARS])
    is_cut = any(part.cut for part in question.parts if part.name in WITH_RESULTS)
    if not is_cut or claim.label == CANNOT_TELL or judge.scale[claim.label].value >= judge.threshold:
        return claim
    if claim.path in whole:
        return claim
    reason = f"{claim.label}, but the results were too long to be shown in full: {claim.reason}"
    return claim._replace(label=CANNOT_TELL, reason=reason[:MAX_QUOTE_CHARS])


def _find_spokesman(claims: Sequence[JudgedClaim], judge: Judge) -> JudgedClaim:
    """Pick the claim that stands for the reply: the worst failing one, else one labelled `cannot_tell`, else the worst."""
    labelled = [claim for claim in claims if claim.label != CANNOT_TELL]
    unsure = [claim for claim in claims if claim.label == CANNOT_TELL]
    worst = min(labelled, key=lambda claim: judge.scale[claim.label].value, default=None)
    if worst is not None and (not unsure or judge.scale[worst.label].value < judge.threshold):
        return worst
    return unsure[0]


def weigh_labels(
    judge: Judge, labels: Sequence[str], likely: Sequence[float | None] | None = None, *, unquoted: int = 0
) -> tuple[Worth, Worth]:
    """Return the worth of claims with these labels, at worst and at best.

    Claims labelled `cannot_tell`, and the `unquoted` sentences, may be as bad or as good as anything on the menu. `likely`:
    the mean of `shade_value` over the labels' probabilities, for each claim.
    """
    ends: list[Worth] = []
    for end in judge.ends:
        values = [end if label == CANNOT_TELL else judge.scale[label].value for label in labels] + [end] * unquoted
        ends.append(grade_claims(judge.claims, values, likely or ()))
    return ends[0], ends[1]


def follows_scale(judgement: Judgement, judge: Judge) -> bool:
    """Whether the value of a judgement is the one that its labels give; the labels must be on the menu."""
    if judgement.claims:
        low, high = weigh_labels(judge, [claim.label for claim in judgement.claims], unquoted=len(judgement.left_out))
        return (judgement.low.value, judgement.high.value) == (low.value, high.value)
    if judgement.label == CANNOT_TELL:
        return (judgement.low.value, judgement.high.value) == judge.ends
    return judgement.best is None and (judgement.expected or judgement.value == judge.scale[judgement.label].value)


def _check_label(label: str, judge: Judge) -> None:
    if label not in judge.menu:
        raise JudgeError("invalid_judgement", f"{format_value(label, 60)} is none of {', '.join(judge.menu)}")


def check_quotes(quotes: Sequence[str], question: Question) -> None:
    """Raise JudgeError unless each quote occurs in what was shown: as sent, as JSON without escapes, or as bare texts."""
    hay = [_squeeze(part.text) for part in question.parts]
    for quote in quotes:
        needle = _squeeze(quote).strip('"') or " ".join(quote.split()).strip('"')
        if len(hay) == len(question.parts) and not any(needle in text for text in hay):  # most are there as sent
            for value in [part.value for part in question.parts]:
                hay += map(_squeeze, (json.dumps(value, ensure_ascii=False), "\n".join(_iter_texts(value))))
        if not needle or not any(needle in text for text in hay):
            raise JudgeError("invalid_judgement", f"{format_value(quote, 120)} is no quote of what was shown")


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
    """Reduce a text to what a quote must repeat: its words and numbers, not capitals, kinds of quotes or spaces in JSON."""
    return _LOOSE.sub("", " ".join(text.translate(_PLAIN_QUOTES).split())).casefold()


_LOOSE = re.compile(r" (?:(?=[{}\[\]:,\"])|(?<=[{}\[\]:,\"] ))")
_PLAIN_QUOTES = str.maketrans("\u201c\u201d\u2018\u2019", "\"\"''")


_PIECE = re.compile("[\u2e80-\U0003ffff]|[^\\W_]+")
"""A word or number; in scripts without spaces between words, a character."""


def _is_evidence(quote: str, question: Question) -> bool:
    """Whether a quote tells anything: it has a number or two words, or is a whole name, text or value that was shown."""
    bare = _squeeze(quote).strip('"')
    if len(_PIECE.findall(bare)) > 1 or any(char.isdigit() for char in bare):
        return True
    return any(bare == _squeeze(text) for part in question.parts for text in _iter_texts(part.value))


MAX_VAGUE_SHARE = 0.01
"""The largest share of probability on tokens that could begin more than one label."""


def read_likely_values(completion: Completion, judge: Judge, labels: Sequence[str]) -> list[float | None] | None:
    """Return the mean value over the labels' probabilities, for each label in the reply, as in G-Eval (Liu et al. 2023).

    Values pass through `shade_value`. An item is None where the tokens are not conclusive; the whole is None where they do
    not spell these labels in this order.
    """
    whole = "".join([token.text for token in completion.tokens])
    if not completion.tokens or whole.strip() != completion.text.strip():
        return None
    places = [found for found in _LABEL.finditer(whole) if found[1] in judge.menu]
    if [found[1] for found in places] != list(labels):
        return None
    starts = list(accumulate([len(token.text) for token in completion.tokens], initial=0))
    found = [completion.tokens[bisect_right(starts, place.start(1)) - 1] for place in places]
    return [_compute_expected_value(token, judge, label) for token, label in zip(found, labels, strict=True)]


_LABEL = re.compile(r'"label"\s*:\s*"((?:[^"\\]|\\.)*)"')


def _compute_expected_value(token: Token, judge: Judge, label: str) -> float | None:
    """Return the mean value over the labels' probabilities at the label's first token; None if it is not conclusive.

    Each likely token counts for the one label it begins. A token that begins several labels ("1" of 1 and 10) tells
    nothing. `cannot_tell` has no value and is left out.
    """
    mass: dict[str, float] = {}
    vague = 0.0
    for text, logprob in token.likeliest:
        start = text.strip(' "')
        meant = [name for name in judge.menu if start and name.startswith(start)]
        if len(meant) == 1:
            mass[meant[0]] = mass.get(meant[0], 0.0) + exp(min(0.0, logprob))
        elif meant:
            vague += exp(min(0.0, logprob))
    mass.pop(CANNOT_TELL, None)
    total = fsum(mass.values())
    if label not in mass or total <= 0.0 or vague > MAX_VAGUE_SHARE * total:
        return None
    shades = [share * shade_value(judge.claims, judge.scale[name].value) for name, share in mass.items()]
    return min(1.0, fsum(shades) / total)
