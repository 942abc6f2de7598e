"""Mark results that report an error which their source does not flag: Chat Completions has no flag for one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from service.core.outcome import Finding
from service.core.results.failures.json_failures import find_in_object, has_data, is_flagged
from service.core.results.failures.patterns import ErrorPattern, read_patterns
from service.core.results.failures.text_failures import find_in_text
from service.core.results.structure import BODIES, ResultBody, build_passage_pointer, iter_bodies, read_text
from service.core.trace import Step, ToolDef, ToolFailure, Trace


def mark_failures(trace: Trace, patterns: Sequence[ErrorPattern] = ()) -> Trace:
    """Return the trace with the results marked that report an error: certain ones as errors, likely ones as likely.

    Patterns take precedence over what a result looks like: first the rubric's, then the tool's own. Where no result reports an
    error, return the trace itself.
    """
    if all(step.result is None for step in trace.steps):
        return trace
    find_tool = trace.index_tools()
    marked = [_mark_step(step, find_tool(step), patterns) for step in trace.steps]
    changed = any(new is not old for new, old in zip(marked, trace.steps, strict=True))
    return replace(trace, steps=tuple(marked)) if changed else trace


def list_failures(trace: Trace) -> Iterator[Finding]:
    """Yield a finding for each error that a result reports and its source does not: `error_in_result`, or `likely_error`."""
    for step in trace.steps:
        failure = step.result.failure if step.result is not None else None
        if failure is not None:
            yield Finding("error_in_result" if failure.certain else "likely_error", failure.reason, failure.path)


def find_failure(content: JsonValue, tool: ToolDef | None = None) -> ToolFailure | None:
    """Find what in a result reports that the call failed: the first certain failure, else the first likely one.

    For a tool that by its name looks for errors (`lint`, `runTests`, `get_logs`), only MCP's flag is certain: an error in its
    result may be what it was asked for.

    >>> find_failure({"error": "no such order", "status": 404})
    ToolFailure(certain=True, reason='the result has error', path='/error')
    >>> find_failure({"error": 0.02, "mean": 4.1}) is None
    True
    """
    name = tool.name if tool is not None else ""
    found = [*_iter_failures(content, name), *_find_empty(content, tool)]
    if any(part.casefold() in _REPORTERS for part in _NAME_PART.findall(name)):
        found = [one if is_flagged(one) else replace(one, certain=False) for one in found]
    return next((one for one in found if one.certain), found[0] if found else None)


def _mark_step(step: Step, tool: ToolDef | None, patterns: Sequence[ErrorPattern]) -> Step:
    result = step.result
    if result is None or result.is_error:
        return step
    known = [*patterns, *(read_patterns(tool.annotations) if tool is not None else ())]
    pattern = next((one for one in known if one.tool in ("", step.call.name) and one.fits(result.content)), None)
    if pattern is not None and not pattern.error:
        return step
    reason = "a pattern of the rubric or the tool names it an error"
    by_pattern = ToolFailure(True, reason, pattern.pointer or "") if pattern else None
    failure = by_pattern or find_failure(result.content, tool or ToolDef(step.call.name))
    if failure is None:
        return step
    placed = replace(failure, path=f"/steps/{step.index}/result/content{failure.path}")
    return replace(step, result=replace(result, is_error=failure.certain, failure=placed))


_REPORTERS = frozenset({
    "lint", "linter", "eslint", "pylint", "ruff", "mypy", "pytest", "test", "tests", "validate", "validator", "validation",
    "verify", "diagnose", "diagnostics", "compile", "compiler", "error", "errors", "exception", "exceptions", "traceback",
    "tracebacks", "log", "logs", "debug",
})  # fmt: skip
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def _iter_failures(content: JsonValue, tool: str) -> Iterator[ToolFailure]:
    """Yield the failures in the result as an object, then those in its texts; only a text that is all there is can be certain."""
    if isinstance(content, dict):
        yield from find_in_object(content, "")
    bodies = list(iter_bodies(content))
    with_data = isinstance(content, dict) and has_data(content, BODIES)
    only = sum(1 for body in bodies if "@" not in body.pointer) == 1 and not with_data
    for body in bodies:
        for one in _iter_in_text(body, tool):
            yield one if only else replace(one, certain=False)


def _iter_in_text(body: ResultBody, tool: str) -> Iterator[ToolFailure]:
    reading = read_text(body.text)
    alone = len(reading.passages) == 1 and not reading.rest.strip()
    for passage in reading.passages:
        if passage.exact and isinstance(passage.value, dict):
            for one in find_in_object(passage.value, build_passage_pointer(body.pointer, passage)):
                yield one if alone else replace(one, certain=False)
    failure = find_in_text(reading.beside_exact, body.pointer, tool=tool)
    if failure is not None:
        whole = "@" not in body.pointer and not any(passage.exact for passage in reading.passages)
        yield failure if whole else replace(failure, certain=False)


def _find_empty(content: JsonValue, tool: ToolDef | None) -> Iterator[ToolFailure]:
    """Yield a likely failure for an empty result where the tool's output schema promises a value."""
    schema = tool.output_schema if tool is not None else None
    if not isinstance(schema, Mapping) or content not in (None, "", {}):
        return
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    nullable = not {None, "null"}.isdisjoint(str(kind) if kind else None for kind in kinds)
    promised = bool(schema.get("required")) if content == {} else not nullable
    if promised and not (content == "" and "string" in kinds):
        yield ToolFailure(False, "the result is empty, and the tool's output schema promises a value", "")
