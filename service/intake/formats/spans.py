"""An OpenTelemetry export: `spans` as flat objects, or `resourceSpans` as OTLP's JSON has them.

A tool's span is told by `gen_ai.tool.name`, `tool.name` or its kind; one marked `tool.synthesized` was made
up by the exporter and is left out. It holds a call (`gen_ai.tool.call.arguments`, else `input.value`) and what was returned
(`gen_ai.tool.call.result`, else `output.value`); a status of error or an `error.type` makes that an error. Models' spans
hold messages, of which each repeats those before: one that was said already is not said again. Of spans within spans that
both hold messages the inner one is read, and agents' spans only where no model's has any.

A call that stands in a model's message and in a tool's span is one: told by its id or, where the span has none, by name
and arguments, else by name in order. The message says then what the model wrote, the span what the tool returned.
All spans are read as one conversation, by their start; messages between agents are turns like any other.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NotRequired

from pydantic import with_config
from typing_extensions import TypedDict

from service.core.trace import Step, ToolCall, Trace
from service.errors import InputError
from service.intake.build import Transcript
from service.intake.format import Format, Given
from service.intake.otlp import Span, kind, spans_of
from service.intake.shapes import OPEN, Loose, StateShape, Tools, read_state
from service.intake.span_messages import SpanMessage, has_messages, read_input, read_output, read_tools_on_offer
from service.intake.span_runs import Run, runs_of
from service.intake.tools import read_tools

_AGENTS = frozenset({"AGENT", "CHAIN", "INVOKE_AGENT", "CREATE_AGENT", "INVOKE_WORKFLOW"})
_OURS = frozenset({"gen_ai", "llm", "tool", "openinference"})


@with_config(OPEN)
class SpansTrace(TypedDict):
    """An export of spans: one of `spans` and `resourceSpans`. `tools` says what was on offer where the spans do not."""

    format: Literal["spans"]
    id: NotRequired[str | None]
    spans: NotRequired[list[dict[str, Loose]]]
    resourceSpans: NotRequired[Loose]
    tools: NotRequired[Tools]
    state: NotRequired[StateShape | None]


def read(record: SpansTrace) -> Trace:
    """The trace of a validated record.

    Raises InputError: no spans, none that tells of a model or a tool, a call without a name, unusable `tools`.
    """
    spans = spans_of(record.get("spans"), record.get("resourceSpans"))
    if not any(span.attributes.keys() & _OURS for span in spans):
        raise InputError.at("", "no span in spans or resourceSpans has attributes of a model or a tool")
    runs = runs_of(spans)
    dialogue = _read_dialogue(_speakers([span for span in spans if has_messages(span)]))
    claims, alone = _claim_runs([call for _, message in dialogue for call in message.calls], runs)
    tools = read_tools(record.get("tools"))
    transcript = Transcript()
    runs_by_step = _write(transcript, dialogue, claims, alone)
    trace = transcript.trace(
        record,
        trace_id=record.get("id") or _conversation(spans),
        tools=read_tools_on_offer(spans) if tools is None else tools,
        state=read_state(record.get("state")),
    )
    return replace(trace, steps=tuple([_add_result(step, runs_by_step.get(step.index)) for step in trace.steps]))


def _conversation(spans: Sequence[Span]) -> str | None:
    for name in ("gen_ai.conversation.id", "session.id"):
        for span in spans:
            value = span.get(name)
            if isinstance(value, str) and value:
                return value
    return next((span.trace for span in spans if span.trace), None)


def _speakers(talking: Sequence[Span]) -> list[Span]:
    """The spans whose messages are read: no span that holds another one, no agent's beside a model's."""
    parents = {span.id: span.parent for span in talking if span.id}
    holding: set[str] = set()
    for span in talking:
        above = span.parent
        while above is not None and above not in holding:
            holding.add(above)
            above = parents.get(above)
    inner = [span for span in talking if span.id not in holding]
    models = [span for span in inner if kind(span) not in _AGENTS]
    return models or inner or list(talking)  # parents in a circle hold one another


Moment = tuple[int, int]
"""A time, and the order of the span where times are the same."""
Dialogue = list[tuple[Moment, SpanMessage]]


def _read_dialogue(spans: Iterable[Span]) -> Dialogue:
    """What was said, once each: what a model was given at its start, what it gave at its end."""
    moments = [
        moment
        for span in spans
        for moment in (((span.start, span.order), False, span), ((span.end, span.order), True, span))
    ]
    dialogue: Dialogue = []
    times: Counter[str] = Counter()
    call_ids: set[str] = set()
    for time, closing, span in sorted(moments, key=lambda moment: moment[0]):
        here: Counter[str] = Counter()
        for message in read_output(span) if closing else read_input(span):
            key = _key(message)
            here[key] += 1
            ids = {call.id for call in message.calls if call.id}
            repeated = ids <= call_ids if ids else not closing and here[key] <= times[key]
            if repeated:
                continue
            times[key] += 1
            call_ids |= ids
            dialogue.append((time, message))
    return dialogue


def _key(message: SpanMessage) -> str:
    """The same for the same message, told twice. Ids do, where there are any: the rest may be written otherwise."""
    if message.results and all(call_id for call_id, _ in message.results):
        return json.dumps(["results", message.role, message.text, [call_id for call_id, _ in message.results]])
    results = [result and [result.content, result.is_error] for _, result in message.results]
    calls = [[call.name, call.raw] for call in message.calls]
    return json.dumps([message.role, message.text, calls, results], sort_keys=True)


def _claim_runs(calls: Sequence[ToolCall], runs: Sequence[Run]) -> tuple[dict[int, Run], list[Run]]:
    """The run of each call that a message made, by the call's place, and the runs that stand for themselves.

    Two ids that differ are two calls; an id on one side alone settles nothing.
    """
    claims: dict[int, Run] = {}
    left = list(runs)
    for key_of, with_id in _LIKENESS:
        waiting: defaultdict[str | None, deque[int]] = defaultdict(deque)
        for index, call in enumerate(calls):
            if index not in claims and not (with_id and call.id and key_of is not _call_id):
                waiting[key_of(call)].append(index)
        unclaimed: list[Run] = []
        for run in left:
            key = key_of(run.call) if bool(run.call.id) == with_id else None
            if key is not None and waiting[key]:
                claims[waiting[key].popleft()] = run
            else:
                unclaimed.append(run)
        left = unclaimed
    return claims, left


def _call_id(call: ToolCall) -> str | None:
    return call.id


def _name_with_arguments(call: ToolCall) -> str | None:
    return None if call.arguments is None else json.dumps([call.name, call.arguments], sort_keys=True)


def _name(call: ToolCall) -> str | None:
    return call.name


_LIKENESS = (
    (_call_id, True),
    (_name_with_arguments, False),
    (_name_with_arguments, True),
    (_name, False),
    (_name, True),
)
"""What tells that a run is a call, best first, and whether it is asked of the runs with an id or of those without."""


def _write(transcript: Transcript, dialogue: Dialogue, claims: dict[int, Run], alone: Sequence[Run]) -> dict[int, Run]:
    """Write everything down in the order of time; gives the run of each step that has one."""
    runs_by_step: dict[int, Run] = {}
    steps = message_calls = 0
    waiting = deque(alone)
    for moment, message in dialogue:
        steps += _write_runs(transcript, _take_before(waiting, moment), runs_by_step, steps)
        for call_id, result in message.results:
            transcript.result(call_id, result)
        if message.role is not None:
            transcript.say(message.role, message.text)
        for call in message.calls:
            run = claims.get(message_calls)
            transcript.call(_complete(call, run))
            if run is not None:
                runs_by_step[steps] = run
            steps, message_calls = steps + 1, message_calls + 1
    _write_runs(transcript, waiting, runs_by_step, steps)
    return runs_by_step


def _take_before(waiting: deque[Run], moment: Moment) -> Iterator[Run]:
    while waiting and (waiting[0].span.start, waiting[0].span.order) < moment:
        yield waiting.popleft()


def _write_runs(transcript: Transcript, runs: Iterable[Run], runs_by_step: dict[int, Run], steps: int) -> int:
    """Write down calls that no message made, and say how many; those that overlap in time were made at once."""
    count = end = 0
    for run in runs:
        transcript.call(run.call, parallel=run.span.start < end)
        transcript.answer(run.result())
        runs_by_step[steps + count] = run
        count, end = count + 1, max(end, run.span.end)
    return count


def _complete(call: ToolCall, run: Run | None) -> ToolCall:
    """A call with what only its tool's span tells of it."""
    if run is None:
        return call
    source = call if call.captured else run.call
    return replace(source, id=call.id or run.call.id)


def _add_result(step: Step, run: Run | None) -> Step:
    return step if run is None else replace(step, result=run.result(step.result))


def _recognise(record: Given) -> bool:
    return isinstance(record.get("spans"), list) or isinstance(record.get("resourceSpans"), list)


FORMAT = Format(SpansTrace, read, _recognise, rank=20, marks="spans or resourceSpans", place=4)
