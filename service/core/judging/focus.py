"""Render what a judge is shown: parts of a trace as JSON, each up to the moment that the question is about."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Literal

from pydantic import JsonValue
from rapidfuzz import fuzz

from service.core.trace import Catalogue, Step, ToolCall, ToolDef, Trace, is_hollow

if TYPE_CHECKING:
    from service.core.judging.judges import Ask

PartName = Literal[
    "conversation", "tools", "tool", "near_misses", "call", "calls", "result", "results", "turn", "said", "answer",
    "criterion", "value", "evidence",
]  # fmt: skip


def render_part(name: PartName, trace: Trace, ask: Ask) -> JsonValue:
    """Return the part with this name as JSON, as far as the question looks."""
    return _RENDERERS[name](trace, ask)


def list_texts(trace: Trace, turn: int | None) -> list[tuple[str, str]]:
    """List the assistant's texts of a turn, or the final answer (turn None), as pointer and text, without empty texts."""
    if turn is None:
        return [("/answer", trace.answer)] if trace.answer else []
    start = bisect_left(trace.messages, turn, key=lambda message: message.turn)
    inside = takewhile(lambda message: message.turn == turn, islice(trace.messages, start, None))
    return [
        (f"/messages/{n}/text", message.text)
        for n, message in enumerate(inside, start)
        if message.role == "assistant" and message.text
    ]


def _render_conversation(trace: Trace, ask: Ask) -> JsonValue:
    if ask.step is not None:
        step = trace.steps[ask.step]
        return list(_iter_events(trace, 0, step.message + 1, before=step.index))
    if ask.turn is not None:
        return list(_iter_events(trace, 0, _find_first_of_model(trace, ask.turn)))
    return list(_iter_events(trace, 0, len(trace.messages)))


def _render_turn(trace: Trace, ask: Ask) -> JsonValue:
    """Render what the model did and said in the turn, and what its tools returned."""
    turn = ask.turn
    start = 0 if turn is None else _find_first_of_model(trace, turn)
    inside = [n for n, message in enumerate(trace.messages) if turn is None or message.turn == turn]
    return list(_iter_events(trace, start, max(inside, default=-1) + 1))


def _find_first_of_model(trace: Trace, turn: int) -> int:
    """Return the index of the assistant's first message in the turn, or the end of the turn if it wrote none."""
    later = (n for n, message in enumerate(trace.messages) if message.turn > turn)
    own = (n for n, message in enumerate(trace.messages) if message.turn == turn and message.role == "assistant")
    return next(own, next(later, len(trace.messages)))


def _iter_events(trace: Trace, start: int, stop: int, *, before: int | None = None) -> Iterator[JsonValue]:
    """Yield texts, calls and results in order, from message `start` up to (not including) message `stop`.

    `before`: a step of the last message. It is left out, together with the later calls of its message and the results of
    all calls of that message, which did not exist yet when the step was made.
    """
    made: dict[int, list[Step]] = {}
    for step in trace.steps:
        made.setdefault(step.message, []).append(step)
    last = None if before is None else trace.steps[before].message
    for n in range(start, stop):
        message = trace.messages[n]
        # Hollow texts of the assistant are not shown: some of them make a judge say yes to anything.
        if message.text and not (message.role == "assistant" and is_hollow(message.text)):
            yield _name_agent({"role": message.role, "text": message.text}, message.agent, message.to)
        for step in made.get(n, ()):
            if before is None or (n != last or step.index < before):
                yield _name_agent(_render_made_call(step.call), step.agent)
        if n != last:
            yield from [_render_returned(step) for step in made.get(n, ()) if step.result is not None]


def _name_agent(event: dict[str, JsonValue], agent: str | None, to: str | None = None) -> JsonValue:
    """Add the agent that an event is of, where a trace has several, and the one that it was written to."""
    return event | {name: value for name, value in (("agent", agent), ("to", to)) if value is not None}


def _render_made_call(call: ToolCall) -> dict[str, JsonValue]:
    if call.arguments is None:
        return {"role": "call", "tool": call.name, "unreadable_arguments": call.raw}
    return {"role": "call", "tool": call.name, "arguments": dict(call.arguments)}


def _render_returned(step: Step) -> dict[str, JsonValue]:
    """Render a result with its pointer, which a judge may extend to name one value."""
    path = f"/steps/{step.index}/result/content"
    found: dict[str, JsonValue] = {"role": "result", "tool": step.call.name, "path": path}
    if step.result is not None:
        found["content"] = step.result.content
        if step.result.is_error:
            found["is_error"] = True
        elif step.result.failure is not None:
            found["suspected_error"] = step.result.failure.reason
    return found


def _list_offered(trace: Trace, ask: Ask) -> list[ToolDef] | None:
    """List the tools that were on offer to the agent of the step, or by the end of the turn; None if they are unknown."""
    every = Catalogue(trace.tools, trace.offers)
    tools, offers = every if ask.step is None else trace.find_catalogue(trace.steps[ask.step].agent)
    late = {
        name
        for name, offer in offers.items()
        if (ask.step is not None and offer.step > ask.step)
        or (ask.step is None and ask.turn is not None and offer.turn > ask.turn)
    }
    return None if tools is None else [tool for tool in tools if tool.name not in late]


def _render_near_misses(trace: Trace, ask: Ask) -> JsonValue:
    """Render the tools most easily confused with the one called, nearest first: at most five."""
    step = _get_step(trace, ask)
    mine = trace.index_tools()(step) or ToolDef(step.call.name)

    def compute_distance(tool: ToolDef) -> tuple[float, str]:
        names = fuzz.token_set_ratio(mine.name.replace("_", " ")[:200], tool.name.replace("_", " ")[:200])
        return -names - fuzz.token_set_ratio(mine.description[:500], tool.description[:500]), tool.name

    others = [tool for tool in _list_offered(trace, ask) or () if tool.name != mine.name]
    return _render_definitions(sorted(others, key=compute_distance)[:5])


def _render_definitions(tools: Sequence[ToolDef] | None) -> JsonValue:
    return None if tools is None else [_render_definition(tool) for tool in tools]


def _render_definition(tool: ToolDef | None) -> JsonValue:
    if tool is None:
        return None
    parameters = dict(tool.parameters) if isinstance(tool.parameters, Mapping) else tool.parameters
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _get_step(trace: Trace, ask: Ask) -> Step:
    return trace.steps[ask.step or 0]


def _list_steps_so_far(trace: Trace, ask: Ask) -> list[Step]:
    if ask.step is not None:
        return list(trace.steps[: ask.step + 1])
    return [step for step in trace.steps if ask.turn is None or step.turn <= ask.turn]


_RENDERERS: Mapping[PartName, Callable[[Trace, Ask], JsonValue]] = {
    "conversation": _render_conversation,
    "tools": lambda trace, ask: _render_definitions(_list_offered(trace, ask)),
    "tool": lambda trace, ask: _render_definition(trace.index_tools()(_get_step(trace, ask))),
    "near_misses": _render_near_misses,
    "call": lambda trace, ask: _render_made_call(_get_step(trace, ask).call),
    "calls": lambda trace, ask: [_render_made_call(step.call) for step in _list_steps_so_far(trace, ask)],
    "result": lambda trace, ask: _render_returned(_get_step(trace, ask)),
    "results": lambda trace, ask: [
        _render_returned(step) for step in _list_steps_so_far(trace, ask) if step.result is not None
    ],
    "turn": _render_turn,
    "said": lambda trace, ask: [text for _, text in list_texts(trace, ask.turn) if not is_hollow(text)],
    "answer": lambda trace, _: None if trace.answer is None or is_hollow(trace.answer) else trace.answer,
    "criterion": lambda _, ask: ask.words,
    "value": lambda _, ask: ask.value,
    "evidence": lambda _, ask: ask.evidence,
}
