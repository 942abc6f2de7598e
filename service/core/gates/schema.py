"""Step 3 of the contract, the form: do the arguments satisfy the tool's own JSON Schema?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.case import Case, build_call_path
from service.core.checks import WHOLE, Aggregate, Check, SubjectOutcome
from service.core.gates.tool_name import find_near
from service.core.json.pointers import escape_token
from service.core.outcome import PERFECT, Errored, Finding, Outcome, Skipped, build_failure
from service.core.schemas import Dialect, SchemaProblem
from service.core.trace import Step, ToolDef


class SchemaGate(Check):
    """Validate each call against the JSON Schema of its tool: 1.0 without a finding, else 0.0. Needs no expectation.

    Every violation is a finding with its pointer, coded `schema_<keyword>`. Other findings: `unparsable_arguments`,
    `unknown_tool` (with near names in the catalogue, or the turn in which the tool came on offer) and `undeclared_argument`. A
    tool schema that cannot be used is Errored (`invalid_schema`), never a score. A trace that does not say which tools were on
    offer is not captured, except for arguments that are not a JSON object, which no tool takes. The text of a custom tool has
    no schema.
    """

    kind: Literal["schema"] = "schema"
    formats: bool = True
    """Whether `format` is asserted."""
    dialect: Dialect = "auto"
    """The dialect of schemas that name none."""
    undeclared: Literal["fail", "note"] = "fail"
    """The effect of an argument that the schema neither declares nor expressly allows."""

    default_aggregate: ClassVar[Aggregate] = "min"
    ignores_step_failures: ClassVar[bool] = True

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for each step."""
        steps = case.trace.steps
        return [(case.subjects[step.index], self.score_step(case, step)) for step in steps] or [(WHOLE, NO_CALL)]

    def score_step(self, case: Case, step: Step) -> Outcome:
        """Score one call."""
        if case.trace.find_catalogue(step.agent).tools is None:
            unreadable = step.call.arguments is None and not step.call.takes_text
            return score_unread(step) if unreadable else NO_TOOLS
        tool = case.find_offered_tool(step)
        if tool is None:
            return build_failure(0.0, build_unknown_tool(case, step))
        if step.call.arguments is None:
            return FREE_TEXT if step.call.takes_text else score_unread(step)
        return self._validate(case, tool, step, step.call.arguments)

    def _validate(self, case: Case, tool: ToolDef, step: Step, arguments: Mapping[str, JsonValue]) -> Outcome:
        try:
            schema = case.compile_schema(tool, self.dialect, formats=self.formats)
            violations = schema.list_violations(arguments, case.meter)
            unknown = schema.find_undeclared(arguments)
        except SchemaProblem as problem:
            return Errored("invalid_schema", f"the schema of {tool.name} cannot be used: {problem}")
        if not violations and not unknown:
            return PERFECT
        base = f"{build_call_path(step)}/arguments"
        findings = [Finding(f"schema_{one.keyword}", one.message, base + one.path) for one in violations]
        undeclared = [
            Finding("undeclared_argument", f"{name} is no parameter of {tool.name}", f"{base}/{escape_token(name)}")
            for name in unknown
        ]
        if findings or self.undeclared == "fail":
            return build_failure(0.0, *findings, *undeclared)
        return PERFECT.add_findings(*undeclared)


NO_CALL = Skipped("not_applicable", "no call was made")
NO_TOOLS = Skipped("not_captured", "the trace does not say which tools were on offer")
FREE_TEXT = Skipped("not_applicable", "a custom tool takes text, for which there is no schema")


def build_unknown_tool(case: Case, step: Step) -> Finding:
    """Build the finding for a call of a tool that was not on offer."""
    name, catalogue = step.call.name, case.trace.find_catalogue(step.agent)
    offer = catalogue.offers.get(name)
    if offer is not None:
        note = f"{name} was not on offer yet: it came later, in turn {offer.turn}"
        return Finding("unknown_tool", note, f"{build_call_path(step)}/name")
    names = [tool.name for tool in catalogue.tools or ()]
    close = case.once(("near", name, step.agent), lambda: find_near(name, names, meter=case.meter))
    hint = f"; near: {', '.join(close[:3])}" if close else ""
    return Finding("unknown_tool", f"{step.call.name} was not on offer{hint}", f"{build_call_path(step)}/name")


def score_unread(step: Step) -> Outcome:
    """Score a call whose arguments are not an object: a failure, unless the trace just does not record them."""
    return build_failure(0.0, build_unparsable(step)) if step.call.captured else explain_gap(step)


def explain_gap(step: Step) -> Skipped:
    """Return why a call has no arguments that were captured: the trace leaves them out, or has a part of them."""
    return Skipped("unread", step.call.problem) if step.call.problem else ARGUMENTS_NOT_CAPTURED


ARGUMENTS_NOT_CAPTURED = Skipped("not_captured", "the trace does not record the arguments of the call")


def build_unparsable(step: Step) -> Finding:
    """Build the finding for arguments that are not a JSON object."""
    message = f"the arguments are no JSON object: {step.call.problem or 'none were given'}"
    return Finding("unparsable_arguments", message, f"{build_call_path(step)}/arguments")
