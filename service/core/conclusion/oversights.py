"""What would pass in silence: expectations that nothing is held against, and names that the trace does not know."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from service.core.budget import Meter
from service.core.case import fold_name
from service.core.checks import Aspect
from service.core.expectation import Ban, CallPattern, Expectation, Scope
from service.core.gates.names import find_near
from service.core.json.pointers import escape_token
from service.core.judging.judges import WORDS
from service.core.outcome import Finding
from service.core.rubric import Rubric
from service.core.schemas import SchemaProblem, build_validator
from service.core.trace import ToolDef, Trace


def find_oversights(trace: Trace, rubric: Rubric, expectation: Expectation | None) -> tuple[Finding, ...]:
    """What looks like an oversight in a request. It changes no score.

    `unread_expectation`: no criterion of the rubric reads what is expected here; one finding for each kind of thing, at the
    first place. `unknown_tool_expected`: an expected or counted tool that the trace does not offer, or a disallowed one if a
    tool of a near name is there. `unknown_argument_expected`: an argument that the tool's schema does not declare. Both with
    near names, and only where the trace tells its tools. `unused_judge`: a judge that the rubric brings and no criterion asks.
    """
    unused = tuple(_find_unused_judges(rubric))
    if expectation is None:
        return unused
    return (*unused, *_find_unread(rubric, expectation), *_find_unknown(trace, rubric, expectation))


def _find_unused_judges(rubric: Rubric) -> Iterator[Finding]:
    for n, judge in enumerate(rubric.judges):
        if judge.id not in rubric.judge_ids and judge.id != WORDS:
            yield Finding(
                "unused_judge", f"no criterion of {rubric.id} asks the judge {judge.id}", f"/rubric/judges/{n}"
            )


class Need(NamedTuple):
    """Something that is expected: where, what, and which aspects of a check would do to read it."""

    path: str
    what: str
    by: frozenset[Aspect]


def _build_need(path: str, what: str, *by: Aspect) -> Need:
    return Need(path, what, frozenset(by))


def _find_unread(rubric: Rubric, expectation: Expectation) -> Iterator[Finding]:
    reads = rubric.reads
    needs = list(_iter_needs(expectation))
    unread = {need.what: need for need in reversed(needs) if not need.by & reads}
    if expectation.gold is None:
        for need in reversed(unread.values()):
            yield _build_finding(rubric, need.path, need.what)
    elif needs and all(not need.by & reads for need in needs):
        yield _build_finding(rubric, "/expected", "anything of the gold")  # of which each system reads its own part


def _build_finding(rubric: Rubric, path: str, what: str) -> Finding:
    return Finding("unread_expectation", f"no criterion of {rubric.id} reads {what}", path)


def _iter_needs(expectation: Expectation) -> Iterator[Need]:
    """Everything that is expected, in the order of writing."""
    for path, scope, _, calls in expectation.sections:
        if scope.no_calls:
            yield _build_need(f"{path}/calls", "whether nothing is called", "none", "extra")
        if scope.calls == "some":
            yield _build_need(f"{path}/calls", "whether something is called", "some")
        for wanted in calls:
            for at, pattern in wanted.options if wanted.required else ():
                yield from _iter_pattern_needs(at, pattern, placed=wanted.position is not None)
        yield from _iter_field_needs(path, scope)
    if expectation.state is not None:
        yield _build_need("/expected/state", "the state", "state")
    if expectation.says_output:
        yield _build_need("/expected/output", "the output", "output")


def _iter_pattern_needs(path: str, pattern: CallPattern, *, placed: bool) -> Iterator[Need]:
    by: set[Aspect] = {"tools"}
    by |= {"order"} if placed else set[Aspect]()
    by |= {"result"} if pattern.says_result else set[Aspect]()
    yield _build_need(path, "which tools are called", *by)
    if pattern.args is not None:
        yield _build_need(f"{path}/args", "the arguments", "args")
    if pattern.says_result:
        yield _build_need(f"{path}/result", "the results", "result")


def _iter_field_needs(path: str, scope: Scope) -> Iterator[Need]:
    if scope.ordered[1:]:
        yield _build_need(f"{path}/ordered", "the order of calls", "order")
    if scope.allow_extra is False:
        yield _build_need(f"{path}/allow_extra", "calls beyond the expected ones", "extra")
    if scope.disallowed:
        yield _build_need(f"{path}/disallowed", "what is disallowed", "disallowed")
    if scope.counts:
        yield _build_need(f"{path}/counts", "the number of calls", "counts")
    if scope.answer is not None:
        yield _build_need(f"{path}/answer", "the answer", "answer")
    if scope.said not in (None, []):
        yield _build_need(f"{path}/said", "what is said", "said")


def _find_unknown(trace: Trace, rubric: Rubric, expectation: Expectation) -> Iterator[Finding]:
    if trace.tools is None:
        return
    fold, meter = fold_name if rubric.fold_names else str, Meter()
    tools = {fold(tool.name): tool for tool in trace.tools}
    for path, name, args in _iter_names(expectation):
        tool = tools.get(fold(name))
        if tool is None:
            hint = _build_hint(name, [tool.name for tool in trace.tools], meter)
            if hint or not _BAN.search(path):  # a ban on what is not offered here is kept, unless it is misspelt
                yield Finding("unknown_tool_expected", f"{name} is not among the tools of the trace{hint}", path)
        elif args:
            yield from _find_unknown_arguments(path.removesuffix("/tool"), tool, args, meter)


_BAN = re.compile(r"/disallowed/\d+/tool$")

NamedTool = tuple[str, str, Iterable[str]]
"""The pointer of a tool's name, the name, and those of arguments."""


def _iter_names(expectation: Expectation) -> Iterator[NamedTool]:
    for path, scope, _, calls in expectation.sections:
        for wanted in calls:
            for at, pattern in wanted.options:
                yield f"{at}/tool", pattern.tool, pattern.args or ()
        for n, ban in enumerate(scope.disallowed):
            yield from _iter_ban_names(f"{path}/disallowed/{n}", ban)
        for tool in scope.counts:
            yield f"{path}/counts/{escape_token(tool)}", tool, ()


def _iter_ban_names(path: str, ban: Ban) -> Iterator[NamedTool]:
    yield f"{path}/tool", ban.tool, ban.args or ()
    if ban.prefer is not None:
        yield f"{path}/prefer", ban.prefer, ()


def _find_unknown_arguments(path: str, tool: ToolDef, names: Iterable[str], meter: Meter) -> Iterator[Finding]:
    schema = tool.parameters
    if not isinstance(schema, Mapping):
        return
    plain = schema.get("properties")
    odd = [name for name in names if not isinstance(plain, Mapping) or name not in plain]
    declared = _list_declared(schema) if odd else None
    if declared is None:
        return
    listed = sorted(declared)  # so that of names that are as near the same are told in every process
    for name in odd:
        if name not in declared:
            message = f"{tool.name} declares no argument {name}{_build_hint(name, listed, meter)}"
            yield Finding("unknown_argument_expected", message, f"{path}/args/{escape_token(name)}")


def _list_declared(schema: Mapping[str, JsonValue]) -> frozenset[str] | None:
    """The arguments that a schema declares, in any branch; None where it may take others, or cannot be used."""
    if "patternProperties" in schema:
        return None
    try:
        known = build_validator(schema)
    except SchemaProblem:
        return None
    closed = schema.get("additionalProperties") is False or schema.get("unevaluatedProperties") is False
    return known.properties if closed or known.find_undeclared({"": None}) else None


def _build_hint(name: str, known: Iterable[str], meter: Meter) -> str:
    close = find_near(name, known, meter=meter)
    return f"; near: {', '.join(close)}" if close else ""
