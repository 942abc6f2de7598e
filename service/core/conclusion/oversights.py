"""Find likely oversights in a request: expectations that no criterion reads, and names that the trace does not know."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from service.core.case import fold_name, is_name_pattern, names_tool
from service.core.checks import ASPECTS, Aspect
from service.core.expectations.expectation import CallPattern, Expectation, ExpectedCall, Listing, Scope
from service.core.gates.tool_name import find_near
from service.core.json.pointers import escape_token
from service.core.outcome import Finding
from service.core.rubric import Rubric
from service.core.schemas import SchemaProblem, build_validator
from service.core.trace import ToolDef, Trace
from service.core.work_limits import Meter


def find_oversights(
    trace: Trace, rubric: Rubric, expectation: Expectation | None, listing: Listing
) -> tuple[Finding, ...]:
    """Find what looks like an oversight in a request. Changes no score.

    `unread_expectation`: no criterion of the rubric reads what is expected; one finding for each kind, at its first place.
    `unknown_tool_expected`: an expected or counted tool that the trace does not offer, a disallowed or allowed one if it offers
    a similar name, and any pattern that matches no tool on offer. `unknown_argument_expected`: an argument that the tool's
    schema does not declare. Both suggest similar names, and need a trace that lists its tools. `unused_judge`: a judge in the
    rubric that no criterion asks.
    """
    unused = rubric.unused_judges
    if expectation is None:
        return unused
    return (*unused, *_find_unread(rubric, expectation, listing), *_find_unknown(trace, rubric, listing))


Need = tuple[str, str, frozenset[Aspect]]
"""Something that is expected: its pointer, its name in words, and the aspects of which a check must read at least one."""


def _find_unread(rubric: Rubric, expectation: Expectation, listing: Listing) -> Iterable[Finding]:
    reads = rubric.reads
    if reads >= ASPECTS:
        return ()
    if expectation.gold is None:
        needs = _list_needs(expectation, listing, without=reads)
        unread = {need[1]: need for need in reversed(needs) if not reads & need[2]} if needs else {}
        return [_build_finding(rubric, path, what) for path, what, _ in reversed(unread.values())] if unread else ()
    needs = _list_needs(expectation, listing)
    if needs and all(reads.isdisjoint(by) for *_, by in needs):
        # each system reads only its own part of it
        return (_build_finding(rubric, "/expected", "anything of the gold"),)
    return ()


def _build_finding(rubric: Rubric, path: str, what: str) -> Finding:
    return Finding("unread_expectation", f"no criterion of {rubric.id} reads {what}", path)


def _list_needs(expectation: Expectation, listing: Listing, *, without: frozenset[Aspect] = frozenset()) -> list[Need]:
    """List everything that is expected, in the order written.

    `without` is what the rubric reads anyway: a call that needs nothing else may be left out.
    """
    needs: list[Need] = []
    reads_calls = without >= TOOLS | ARGUMENTS
    for section in listing.sections:
        path, scope = section.path, section.scope
        if scope.no_calls:
            needs.append((f"{path}/calls", "whether nothing is called", NO_CALL))
        if scope.calls == "some":
            needs.append((f"{path}/calls", "whether something is called", SOME_CALL))
        for expected_call in section.expected_calls:
            if expected_call.required:
                needs += _list_call_needs(expected_call, reads_calls=reads_calls)
        if not scope.__pydantic_fields_set__ <= CALL_FIELDS:  # (what `model_fields_set` looks up)
            needs += _list_field_needs(path, scope)
    if expectation.state is not None:
        needs.append(("/expected/state", "the state", STATE))
    if expectation.says_output:
        needs.append(("/expected/output", "the output", OUTPUT))
    return needs


CALL_FIELDS = frozenset({"calls", "unordered", "optional"})
"""Fields whose needs are listed with the calls themselves."""
NO_CALL: frozenset[Aspect] = frozenset({"none", "extra"})
SOME_CALL: frozenset[Aspect] = frozenset({"some"})
STATE: frozenset[Aspect] = frozenset({"state"})
OUTPUT: frozenset[Aspect] = frozenset({"output"})
TOOLS: frozenset[Aspect] = frozenset({"tools"})
ORDER: frozenset[Aspect] = frozenset({"order"})
RESULT: frozenset[Aspect] = frozenset({"result"})
ARGUMENTS: frozenset[Aspect] = frozenset({"args"})


def _list_call_needs(expected_call: ExpectedCall, *, reads_calls: bool) -> list[Need]:
    placed = expected_call.position is not None
    needs: list[Need] = []
    for at, pattern in expected_call.options:
        if placed or not reads_calls or "result" in pattern.__pydantic_fields_set__:  # (as `says_result`)
            needs += _list_pattern_needs(at, pattern, placed=placed)
    return needs


def _list_pattern_needs(path: str, pattern: CallPattern, *, placed: bool) -> list[Need]:
    by = TOOLS | ORDER if placed else TOOLS
    tools = "which tools are called"
    if pattern.says_result:
        needs: list[Need] = [(path, tools, by | RESULT), (f"{path}/result", "the results", RESULT)]
    else:
        needs = [(path, tools, by)]
    return needs if pattern.args is None else [needs[0], (f"{path}/args", "the arguments", ARGUMENTS), *needs[1:]]


def _list_field_needs(path: str, scope: Scope) -> list[Need]:
    said: tuple[tuple[object, str, str, Aspect], ...] = (
        (scope.ordered[1:], "ordered", "the order of calls", "order"),
        (scope.allow_extra is False, "allow_extra", "calls beyond the expected ones", "extra"),
        (scope.disallowed, "disallowed", "what is disallowed", "disallowed"),
        (scope.allowed is not None, "allowed", "what alone is allowed", "disallowed"),
        (scope.counts, "counts", "the number of calls", "counts"),
        (scope.answer is not None, "answer", "the answer", "answer"),
        (scope.said not in (None, []), "said", "what is said", "said"),
    )
    return [(f"{path}/{field}", what, frozenset({by})) for given, field, what, by in said if given]


NamedTool = tuple[str, str, Mapping[str, object], str]
"""The pointer to a tool's name, the name, its expected arguments, and what names it: `call`, `count` or `limit`.

A count or a limit may be a pattern. A limit may name a tool that is not on offer, unless it is misspelt.
"""

NO_ARGUMENTS: Mapping[str, object] = {}


def _find_unknown(trace: Trace, rubric: Rubric, listing: Listing) -> Iterator[Finding]:
    if trace.tools is None:
        return
    folds = rubric.fold_names
    tools = {fold_name(tool.name) if folds else tool.name: tool for tool in trace.tools}
    named = [(tools.get(fold_name(one[1]) if folds else one[1]), one) for one in _list_names(listing)]
    strange = [(tool, one) for tool, one in named if tool is None or not tool.properties.issuperset(one[2])]
    if not strange:
        return
    meter = Meter()
    declared: dict[str, Declared | None] = {}
    for tool, (path, name, args, by) in strange:
        if tool is None:
            is_pattern = by != "call" and is_name_pattern(name)
            if is_pattern and _matches_any(fold_name(name) if folds else name, tools, meter):
                continue
            hint = _build_hint(name, [tool.name for tool in trace.tools], meter)
            if hint or is_pattern or by != "limit":
                lacking = "matches none of" if is_pattern else "is not among"
                yield Finding("unknown_tool_expected", f"{name} {lacking} the tools of the trace{hint}", path)
            continue
        if tool.name not in declared:  # once for each tool, as a schema may be long
            declared[tool.name] = _list_declared(tool)
        known = declared[tool.name]
        if known is not None:
            yield from _find_unknown_arguments(path.removesuffix("/tool"), tool, args, known, meter)


def _matches_any(pattern: str, names: Collection[str], meter: Meter) -> bool:
    """Whether a pattern matches one of these names; also if nobody can afford to look."""
    if not meter.can_afford("names", len(names)):
        return True
    meter.spend("names", len(names))
    return any(names_tool(pattern, name) for name in names)


def _list_names(listing: Listing) -> list[NamedTool]:
    names: list[NamedTool] = []
    for section in listing.sections:
        path, scope = section.path, section.scope
        for expected_call in section.expected_calls:
            for at, pattern in expected_call.options:
                names += ((f"{at}/tool", pattern.tool, pattern.args or NO_ARGUMENTS, "call"),)
        for n, ban in enumerate(scope.disallowed):
            at = f"{path}/disallowed/{n}"
            names.append((f"{at}/tool", ban.tool, ban.args or NO_ARGUMENTS, "limit"))
            names += [(f"{at}/but/{m}", name, NO_ARGUMENTS, "limit") for m, name in enumerate(ban.but)]
            names += [] if ban.prefer is None else [(f"{at}/prefer", ban.prefer, NO_ARGUMENTS, "call")]
        for n, name in enumerate(scope.allowed or ()):
            names.append((f"{path}/allowed/{n}", name, NO_ARGUMENTS, "limit"))
        for name in scope.counts:
            names.append((f"{path}/counts/{escape_token(name)}", name, NO_ARGUMENTS, "count"))
    return names


Declared = Mapping[str, None]
"""Names of arguments, sorted so that every process suggests the same of equally similar names."""


def _find_unknown_arguments(
    path: str, tool: ToolDef, args: Mapping[str, object], declared: Declared, meter: Meter
) -> Iterator[Finding]:
    for name in args:
        if name not in tool.properties and name not in declared:
            message = f"{tool.name} declares no argument {name}{_build_hint(name, declared, meter)}"
            yield Finding("unknown_argument_expected", message, f"{path}/args/{escape_token(name)}")


def _list_declared(tool: ToolDef) -> Declared | None:
    """Return the arguments a tool declares, in any branch; None if it may take others or its schema is unusable."""
    schema = tool.parameters
    if not isinstance(schema, Mapping) or "patternProperties" in schema:
        return None
    try:
        known = build_validator(schema)
    except SchemaProblem:
        return None
    closed = schema.get("additionalProperties") is False or schema.get("unevaluatedProperties") is False
    if known.properties is None or not (closed or known.find_undeclared({"": None})):
        return None
    return dict.fromkeys(sorted(known.properties))


def _build_hint(name: str, known: Iterable[str], meter: Meter) -> str:
    close = find_near(name, known, meter=meter)
    return f"; near: {', '.join(close)}" if close else ""
