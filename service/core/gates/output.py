"""Step 4 of the contract, where a run returns a value: is it the expected one, and does it fit its schema?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Literal

from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, Part, SubjectOutcome
from service.core.gates.answer import compare_output, score_silence
from service.core.outcome import PERFECT, Errored, Finding, Outcome, Skipped, build_failure
from service.core.schemas import SchemaProblem, build_validator


class OutputGate(Check):
    """Compare the run's output with `output`, a value or a matcher, and with the JSON Schema that the trace gives for it.

    For a trace without `output`, the answer counts as the output, read as JSON where it is an object or array. Findings:
    `wrong_output`, `output_schema_<keyword>`.
    """

    kind: Literal["output"] = "output"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"text"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"output"})

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the schema and one for the value, as far as there is either."""
        outcomes = [outcome for outcome in (_validate_output(case), compare_output(case)) if outcome is not None]
        return [(WHOLE, outcome) for outcome in outcomes] or [(WHOLE, NO_OUTPUT)]


NO_OUTPUT = Skipped("not_applicable", "no output was expected")


def _validate_output(case: Case) -> Outcome | None:
    schema = case.trace.output.schema if case.trace.output else None
    if schema is None:
        return None
    if case.output is None:
        return score_silence(case, None)
    try:
        validator = build_validator(schema)
    except SchemaProblem as problem:
        return Errored("invalid_schema", f"the schema of the output cannot be used: {problem}")
    violations = validator.list_violations(case.output.value, case.meter)
    path = case.output.path
    findings = [Finding(f"output_schema_{one.keyword}", one.message, path + one.path) for one in violations]
    return build_failure(0.0, *findings) if findings else PERFECT
