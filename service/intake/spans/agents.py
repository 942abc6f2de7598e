"""Which agent each span is of, and who wrote what an agent was sent: the user, or another agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from service.core.json.walk import list_leaves
from service.intake.spans.kinds import Enclosing, read_agent
from service.intake.spans.messages import SpanMessage
from service.intake.spans.otlp import Span

_MIN_WORDS = 3
"""Words of a text that is known to be an agent's because the agent wrote it before: anybody may write a shorter one."""


class Agents:
    """The agents of a trace, and what they have written so far. If only one agent speaks, nobody is named."""

    def __init__(self, spans: Sequence[Span], speaking: Iterable[Span]) -> None:
        """`speaking`: the spans whose messages are read or, if there are none, those of tool runs."""
        self._names = {span.order: name for span in spans if (name := read_agent(span)) is not None}
        named = {span.id: self._names[span.order] for span in spans if span.id and span.order in self._names}
        self._around = Enclosing(spans, named)
        runs = [span for span in spans if self._names.get(span.order) not in (None, self._around.find(span))]
        self._runs = {span.order for span in runs}
        self._around_runs = Enclosing(spans, {span.id: span for span in runs if span.id})
        self.several = len({self._find(span) for span in speaking}) > 1
        self._writers: dict[str, str] = {}
        self._spoken: set[str | None] = set()
        self._begun: set[int] = set()

    def find(self, span: Span) -> str | None:
        """Return the name of a span's agent, if there are several."""
        return self._find(span) if self.several else None

    def _find(self, span: Span) -> str | None:
        return self._names.get(span.order) or self._around.find(span)

    def note(self, span: Span, messages: Sequence[SpanMessage]) -> None:
        """Note what the agent of a span replied."""
        agent = self.find(span)
        self._spoken.add(agent)
        for message in messages if self.several else ():
            arguments: list[JsonValue] = [dict(call.arguments or {}) for call in message.calls]
            for text in (message.text, *[leaf.value for one in arguments for leaf in list_leaves(one)]):
                if isinstance(text, str) and len(text.split(maxsplit=_MIN_WORDS)) >= _MIN_WORDS:
                    self._writers.setdefault(text.strip(), agent or "")

    def begin(self, span: Span) -> str | None:
        """Return the agent that a request's new texts are from, if the request begins a run within that agent's own run.

        None: nobody knows yet, and `find_writer` says whose a text is.
        """
        run = span if span.order in self._runs else self._around_runs.find(span)
        if not self.several or run is None or run.order in self._begun:
            return None
        self._begun.add(run.order)
        outer = self._around.find(run)
        return outer if outer in self._spoken else None

    def find_writer(self, span: Span, text: str) -> str | None:
        """Return the other agent that wrote a text before, word for word ("" if it has no name); None if it is the user's."""
        writer = self._writers.get(text.strip())
        return None if writer == (self.find(span) or "") else writer
