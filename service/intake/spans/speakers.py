"""Select the spans whose messages are read, and find model replies that no span records."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from service.intake.endings import ENDINGS, list_lost
from service.intake.spans.kinds import is_copy, read_kind, sort_span
from service.intake.spans.messages import Lost, read_output
from service.intake.spans.otlp import Given, Span
from service.intake.spans.sources import event_name, list_input, list_output
from service.intake.speech import find_text

_ENDS: frozenset[JsonValue] = frozenset({"stop", "length", "max_tokens", "end_turn", "content_filter", "stop_sequence"})
"""Finish reasons of replies that call nothing."""


class Talk(NamedTuple):
    """A span and the messages it carries, unparsed."""

    span: Span
    input: Sequence[Given]
    output: Sequence[Given]


class MissingReply(NamedTuple):
    """A model span whose reply is not recorded, and what that may have been."""

    span: Span
    lost: tuple[Lost, ...]


class Speakers(NamedTuple):
    """The spans whose messages are read, the replies that none records, and all model spans, one for each reply."""

    talks: Sequence[Talk]
    missing: Sequence[MissingReply]
    models: Sequence[Span]


def find_speakers(spans: Sequence[Span], run_starts: Sequence[int]) -> Speakers:
    """Select the spans to read. `run_starts`: start times of tool runs, sorted.

    If nested spans both carry messages, the inner one is read; spans of agents and chains are read only if no model
    span has messages.
    """
    sorts = {span.order: sort_span(span) for span in spans if not is_copy(span)}
    talking = [
        Talk(span, list_input(span), list_output(span)) for span in spans if sorts.get(span.order, "tool") != "tool"
    ]
    talking = [talk for talk in talking if talk.input or talk.output]
    passes: dict[str | None, str | None] = {
        span.id: span.parent for span in spans if span.id and sorts.get(span.order) != "tool"
    }
    holding = _find_above([talk.span for talk in talking], passes)
    inner = [talk for talk in talking if talk.span.id not in holding]
    talks = [talk for talk in inner if sorts[talk.span.order] == "model"] or inner or talking  # parents in a circle
    models = [span for span in spans if sorts.get(span.order) == "model"]
    outer = _find_above(models, passes)
    models = [span for span in models if span.id not in outer] or models
    unknown = [span for span in spans if sorts.get(span.order) == "unknown"]
    silent = [*_find_silent(models, talks, holding, passes), *_find_cut_off(talks, models)]
    starts = [span.start for span in models]
    missing = [MissingReply(span, _guess_reply(span, starts, run_starts)) for span in silent]
    last = max(talks, key=lambda talk: (talk.span.end, talk.span.order), default=None)
    if last is not None and last.output and sorts[last.span.order] == "model":
        missing += _find_broken(last, starts, run_starts)
    untold = {talk.span.order for talk in talking}
    missing += [
        MissingReply(span, (("call", f"a span of the kind {read_kind(span)}"),))
        for span in unknown
        if span.order not in untold
    ]
    return Speakers(talks, missing, models)


def has_content(spans: Iterable[Span]) -> bool:
    """Whether any of these spans is a model's or a tool's, is of an unknown kind, or carries messages."""
    return any(
        sort_span(span) in ("model", "tool", "unknown") or bool(list_input(span) or list_output(span)) for span in spans
    )


def _find_above(spans: Iterable[Span], parents: dict[str | None, str | None]) -> set[str]:
    """Return the ids of all spans that contain one of these."""
    above: set[str] = set()
    for span in spans:
        here = span.parent
        while here is not None and here not in above:
            above.add(here)
            here = parents.get(here)
    return above


def _find_silent(
    models: Sequence[Span], talks: Sequence[Talk], holding: set[str], parents: dict[str | None, str | None]
) -> Iterator[Span]:
    """Iterate over model spans without messages, if neither a span inside nor one around them has any."""
    heard = {talk.span.order for talk in talks}
    told = {talk.span.id for talk in talks if talk.span.id}
    within: dict[str | None, bool] = {}
    for span in models:
        if span.order in heard or span.id in holding or span.failed:
            continue
        if not _is_within(span.parent, told, parents, within):
            yield span


def _is_within(
    span_id: str | None, told: set[str], parents: dict[str | None, str | None], known: dict[str | None, bool]
) -> bool:
    path: list[str | None] = []
    here = span_id
    while here is not None and here not in known and here not in told:
        known[here] = False
        path.append(here)
        here = parents.get(here)
    found = here is not None and (here in told or known[here])
    known.update(dict.fromkeys(path, found))
    return found


def _find_cut_off(talks: Sequence[Talk], models: Sequence[Span]) -> Iterator[Span]:
    """Iterate over model spans that record a request but no reply, unless a later request repeats it."""
    orders = {span.order for span in models}
    most = -1
    for talk in reversed(talks):
        replies = _count_replies(talk.input)
        again = replies <= most if talk.span.failed else replies < most  # what failed is tried again with the same
        if talk.span.order in orders and not talk.output and not again:
            yield talk.span
        most = max(most, replies)


def _find_broken(talk: Talk, starts: Sequence[int], run_starts: Sequence[int]) -> Iterator[MissingReply]:
    """Report the last reply if it failed or lacks the calls that it ended with."""
    messages = read_output(talk.span, talk.output)
    said = any(message.text for message in messages)
    called = any(message.calls or message.lost for message in messages)
    told = [*_list_ends(talk.span), *[reason for item in talk.output if (reason := find_text(item, *ENDINGS))]]
    lost = next((found for reason in told if (found := list_lost(reason, said=said, called=called))), ())
    guessed = [one for one in _guess_reply(talk.span, starts, run_starts, ended=False) if one[0] in lost]
    if guessed:
        yield MissingReply(talk.span, tuple(guessed))


def _count_replies(messages: Sequence[Given]) -> int:
    return sum(map(_is_reply, messages))


def _is_reply(message: Given) -> bool:
    inner = message.get("message")
    held = inner if isinstance(inner, dict) else message
    said = (held.get("role"), held.get("type"), event_name(message))
    return not {"assistant", "ai", "model", "gen_ai.assistant.message"}.isdisjoint(map(str, said))


def _list_ends(span: Span) -> list[str]:
    """Return how a span's replies ended, as the span states it."""
    reasons = span.get("gen_ai.response.finish_reasons") or span.get("llm.finish_reason")
    listed = reasons if isinstance(reasons, list) else [reasons]
    return [reason for reason in listed if isinstance(reason, str)]


def _guess_reply(
    span: Span, starts: Sequence[int], run_starts: Sequence[int], *, ended: bool = True
) -> tuple[Lost, ...]:
    """Describe what an unrecorded reply may have been.

    It may be a text, and also a call unless it ended otherwise or a tool ran next. `starts`: start times of the model
    spans. `ended`: whether to consider how it ended.
    """
    what = f"what the model said in the span {span.name!r} ({span.id or span.path})"
    reasons = _list_ends(span) if ended else []
    following = bisect_right(starts, span.start)
    before = starts[following] if following < len(starts) else None
    run = bisect_left(run_starts, span.start)
    ran = run < len(run_starts) and (before is None or run_starts[run] < before)
    if ran or (reasons and all(reason in _ENDS for reason in reasons)):
        return (("text", what),)
    return (("text", what), ("call", f"a call that the model may have made in the span {span.name!r}"))
