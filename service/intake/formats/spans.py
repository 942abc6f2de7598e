"""An OpenTelemetry export: `spans` as flat objects, or `resourceSpans` as in OTLP's JSON.

A tool span holds a call and its result. Model spans hold messages, and each repeats those before it: a message counts
once. If nested spans both hold messages, the inner one is read; agent spans are read only if no model span has messages.

A call in a model's message and in a tool's span is one call, matched by id and name or, if the span has no id, by
name, as long as the arguments do not contradict. The message then says what the model wrote, the span what the tool
returned. Anything else in the spans that looks like a call, wherever it stands, is one of these or unread. All spans
are read as one conversation, by their start. If several agents speak, each has the tools that its requests list; what
one writes to another, within whose run it runs or word for word what that one wrote before, is no turn of the user's.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard, cast

from pydantic import JsonValue

from service.core.json.members import as_text, find_text
from service.core.trace import Catalogue, ResourceUsage, Step, ToolCall, Trace
from service.errors import InputError
from service.intake.build import Record, Request, Transcript, add_catalogues, add_offers
from service.intake.cursor import Cursor
from service.intake.format import Format
from service.intake.spans.dialogue import Agents, DialogueEntry, Moment, list_unread_calls, read_dialogue
from service.intake.spans.exports import Span, read_spans, split_export
from service.intake.spans.messages import read_tools_on_offer
from service.intake.spans.runs import Run, match_runs, read_runs
from service.intake.spans.selection import is_genai_span, read_kind, select_spans
from service.intake.tools import read_tools
from service.intake.unread_parts.leftovers import Rest
from service.intake.unread_parts.repeated_calls import KnownCalls


@Format(score=80, signs=("spans[]", "resourceSpans[]"), split=split_export)
def spans(record: Cursor) -> Trace:
    """OpenTelemetry spans: `spans` or `resourceSpans`. `tools`: what was on offer, if the spans do not say."""
    raw = record.members
    record.drop()
    spans = read_spans(raw.get("spans"), raw.get("resourceSpans"))
    if not any(map(is_genai_span, spans)):
        raise InputError.at("", "no span in spans or resourceSpans has attributes of a model or a tool")
    runs = read_runs(spans)
    carriers, missing, models = select_spans(spans, [run.span.start for run in runs])
    agents = Agents(spans, [one.span for one in carriers] or [run.span for run in runs])
    entries, aliases = read_dialogue(carriers, missing, agents)
    calls = [call for entry in entries for call in entry.message.calls]
    matches, unmatched = match_runs(calls, runs)
    others = defaultdict[str | None, list[str]](list)
    for alias, made in aliases.items():
        others[made].append(alias)
    known = KnownCalls(run.call for run in unmatched)
    for place, call in enumerate(calls):  # each with its mentions in the model's message and the tool's span
        ran = [matches[place].call] if place in matches else []
        known.add(call, *ran, *[replace(call, id=alias) for alias in others[call.id]])
    read_orders = {carrier.span.order for carrier in carriers} | {span.order for span in models}
    leftovers = list_unread_calls(spans, known, read_orders)
    dialogue = sorted([*entries, *leftovers], key=lambda entry: entry.moment)
    tools = read_tools(raw.get("tools"))
    writer = _Writer(record.out, unmatched, agents)
    writer.write(dialogue, matches)
    tops = sorted([one for one in spans if read_kind(one) == "AGENT"], key=lambda one: (one.start, -one.end))
    answer = as_text(tops[0].get("output.value")) if tops else None  # of OpenInference's outermost agent
    if answer and not answer.startswith(("{", "[")) and record.out.is_calling() and not missing:
        record.out.say("assistant", answer)  # an argument of the last call
    stated = [span.get(name) for name in ("gen_ai.conversation.id", "session.id") for span in spans]
    stated += [span.trace for span in spans]
    record.out.id = find_text(raw, "id") or next(filter(None, map(as_text, stated)), None)
    trace = record.out.build_trace(cast("Record", raw), tools=read_tools_on_offer(spans) if tools is None else tools)
    if tools is None:
        trace = _add_offers(trace, models, writer, agents)
    timed = [span for span in spans if span.timed]
    duration = (max(span.end for span in timed) - min(span.start for span in timed)) / 1e9 if timed else None
    usage = _sum_usage(duration, models)
    return replace(trace, steps=tuple(map(writer.complete_step, trace.steps)), usage=usage)


def _add_offers(trace: Trace, models: Sequence[Span], writer: _Writer, agents: Agents) -> Trace:
    """Return the trace with the tools that requests list, for each agent those of its own, and when they came on offer."""
    if not agents.several:
        return add_offers(trace, writer.list_requests(models, trace.steps), writer.list_unrecorded_tools(trace.steps))
    by_agent: defaultdict[str | None, list[Span]] = defaultdict(list)
    for span in models:
        by_agent[agents.find(span)].append(span)
    catalogues: dict[str | None, Catalogue] = {}
    for agent, own in by_agent.items():
        steps = [step for step in trace.steps if step.agent == agent]
        alone = replace(trace, tools=read_tools_on_offer(own))
        alone = add_offers(alone, writer.list_requests(own, trace.steps), writer.list_unrecorded_tools(steps))
        catalogues[agent] = Catalogue(alone.tools, alone.offers)
    return add_catalogues(trace, catalogues)


class _Writer:
    """Writes a trace in order of time, and keeps the run and the model span of each step."""

    def __init__(self, out: Transcript, unmatched: Sequence[Run], agents: Agents) -> None:
        self.transcript = out
        self._agents = agents
        self._unmatched = deque(unmatched)
        self._runs: dict[int, Run] = {}
        self._replies: dict[int, Span] = {}
        self._moments: list[Moment] = []
        self._recorded: set[int] = set()
        self._steps = 0

    def write(self, dialogue: Sequence[DialogueEntry], matches: Mapping[int, Run]) -> None:
        """Write the whole dialogue. `matches`: the runs of calls that messages made, by call index."""
        place = 0
        for entry in dialogue:
            self._write_runs(entry.moment)
            self._write_message(entry)
            for call in entry.message.calls:
                self._moments.append(entry.moment)
                if entry.reply_of is not None:
                    self._recorded.add(self._steps)
                self._write_call(call, matches.get(place), entry.reply_of if call is entry.message.calls[0] else None)
                place += 1
        self._write_runs(None)

    def list_requests(self, models: Sequence[Span], steps: Sequence[Step]) -> list[Request]:
        """Return, for each model span, the tools that it lists and the number of calls made before it."""
        own = {span.order: index for index, span in reversed(self._replies.items())}
        requests: list[Request] = []
        for span in sorted(models, key=lambda one: (one.start, one.order)):
            made = bisect_left(self._moments, (span.start, span.order))
            made = min(made, own.get(span.order, made))
            turn = steps[min(made, len(steps) - 1)].turn if steps else 0
            requests.append(Request(made, turn, read_tools_on_offer([span])))
        return requests

    def list_unrecorded_tools(self, steps: Sequence[Step]) -> list[str]:
        """Return the tools of calls that are not replies of recorded spans: what was on offer to them is unknown."""
        return [step.call.name for step in steps if step.index not in self._recorded]

    def complete_step(self, step: Step) -> Step:
        """Return the step with what its tool returned, and its usage."""
        run, reply = self._runs.get(step.index), self._replies.get(step.index)
        result = step.result if run is None else run.read_result(step.result)
        timed = run is not None and run.span.timed
        duration = (run.span.end - run.span.start) / 1e9 if run is not None and timed else None
        return replace(step, result=result, usage=_sum_usage(duration, [] if reply is None else [reply]))

    def _write_message(self, entry: DialogueEntry) -> None:
        message = entry.message
        self.transcript.agent = entry.agent
        for call_id, result in message.results:
            self.transcript.add_result(call_id, result)
        if message.role is not None:
            self.transcript.say(message.role, message.text, to=entry.to)
        for part in message.unread:
            if isinstance(part, Rest):
                self.transcript.leave(part._replace(path=entry.path))
            else:
                self.transcript.note_unread(part[0], entry.path, part[1])

    def _write_call(self, call: ToolCall, run: Run | None, reply: Span | None, *, parallel: bool = False) -> None:
        if run is not None:  # what only its span records
            source = call if call.captured else run.call
            call = replace(source, id=call.id or run.call.id, tool_id=run.call.tool_id)
            self._runs[self._steps] = run
        self.transcript.call(call, parallel=parallel)
        if reply is not None:
            self._replies[self._steps] = reply
        self._steps += 1

    def _write_runs(self, before: Moment | None) -> None:
        """Write calls that no message made, up to a moment. Those that overlap in time are parallel."""
        end = 0
        while self._unmatched and (
            before is None or (self._unmatched[0].span.start, self._unmatched[0].span.order) < before
        ):
            run = self._unmatched.popleft()
            self._moments.append((run.span.start, run.span.order))
            self.transcript.agent = self._agents.find(run.span)
            self._write_call(run.call, run, None, parallel=run.span.start < end)
            self.transcript.answer(run.read_result())
            end = max(end, run.span.end)


_INPUT_TOKENS = ("gen_ai.usage.input_tokens", "llm.token_count.prompt", "gen_ai.usage.prompt_tokens")
_OUTPUT_TOKENS = ("gen_ai.usage.output_tokens", "llm.token_count.completion", "gen_ai.usage.completion_tokens")
_COSTS = ("operation.cost", "llm.cost.total", "gen_ai.usage.cost", "gen_ai.usage.total_cost")


def _sum_usage(duration: float | None, models: Sequence[Span]) -> ResourceUsage | None:
    """Return the duration, and each number if every span states it: a partial sum would look complete."""
    sums: list[float | None] = []
    for names in (_INPUT_TOKENS, _OUTPUT_TOKENS, _COSTS):
        stated = [[value for name in names if _is_amount(value := span.get(name))][:1] for span in models]
        sums.append(math.fsum([one for (one,) in stated]) if stated and all(stated) else None)
    read, written, cost = sums
    usage = ResourceUsage(
        duration, None if read is None else int(read), None if written is None else int(written), cost
    )
    return None if usage == ResourceUsage() else usage


def _is_amount(value: JsonValue) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf
