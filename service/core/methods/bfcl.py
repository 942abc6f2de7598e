"""Check the calls of a trace by BFCL's AST method.

`service.core.methods.bfcl_number` gives BFCL's own verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar, Literal, cast

from pydantic import JsonValue

from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Check, SubjectOutcome
from service.core.critics import AnyOf, Critic, Exact
from service.core.gates.compat import spend_on_pairs
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.methods.bfcl_number import Answer, Call, Doc, check
from service.core.outcome import PERFECT, Finding, Outcome, build_failure
from service.core.trace import Step
from service.errors import InputError


class BfclAstGate(Check):
    """Run the AST check of the Berkeley Function-Calling Leaderboard: 1.0 or 0.0 for the trace, as on the leaderboard.

    Takes BFCL gold (`{"format": "bfcl"}`) or plain expected calls. The arguments of the latter must be values, `exact`, or
    `any_of` exact ones; another matcher is an InputError, since the method knows accepted values alone. So is a category of
    Java or JavaScript, whose values would need conversion. Findings carry the reason: `wrong_count`, `wrong_name`,
    `missing_required`, `unexpected_argument`, `type_error`, `value_error`, `missing_optional`, `no_match`, `over_call`.
    Source: ShishirPatil/gorilla, `ast_checker.py`.
    """

    kind: Literal["bfcl_ast"] = "bfcl_ast"
    has_own_number: ClassVar[bool] = True
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "extra", "tools"})
    category: str | None = None
    """BFCL's category, which picks the rule. Absent: the gold's category, else the number of expected calls decides."""

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Yield one outcome for the trace."""
        yield WHOLE, self._check(case)

    def _check(self, case: Case) -> Outcome:
        expected = case.expectation
        if expected is None or not case.lists_calls:
            return NOTHING_EXPECTED
        gold = expected.gold or {}
        answers = _read_gold_answers(gold) if gold.get("format") == "bfcl" else _build_answers(case)
        category = self.category or cast("str | None", gold.get("category"))
        if "java" in (category or ""):
            raise InputError.at("/expected/category", f"{category}: of BFCL's languages only Python is carried")
        spend_on_pairs(case, each=16)
        verdict = check(answers, _list_calls(case.trace.steps), _list_docs(case), category=category)
        if verdict.valid:
            return PERFECT
        return build_failure(0.0, Finding(verdict.code, verdict.message, verdict.path))


def _read_gold_answers(gold: Mapping[str, JsonValue]) -> list[Answer] | None:
    return cast("list[Answer] | None", gold.get("possible_answer"))


def _build_answers(case: Case) -> list[Answer] | None:
    options = [expected_call.options[0] for expected_call in case.expected_calls]
    return [{pattern.tool: _list_accepted(path, pattern.args or {})} for path, pattern in options] or None


def _list_accepted(path: str, args: Mapping[str, object]) -> dict[str, JsonValue]:
    return {name: _list_accepted_values(f"{path}/args/{name}", value) for name, value in args.items()}


def _list_accepted_values(path: str, value: object) -> list[JsonValue]:
    """List the values that pass, with "" last where the argument is optional, as BFCL writes it."""
    if not isinstance(value, Critic):
        return [cast("JsonValue", value)]
    options = value.of if isinstance(value, AnyOf) else (value,)
    exact = [option for option in options if isinstance(option, Exact)]
    if len(exact) < len(options):
        raise InputError.at(path, "BFCL's method compares with accepted values: a value, exact, or any_of exact")
    return [*(option.value for option in exact), *([""] if value.optional else [])]


def _list_calls(steps: Iterable[Step]) -> list[Call] | None:
    """List the calls; None where one did not decode."""
    calls = [(step.call.name, step.call.arguments) for step in steps]
    return [(name, args) for name, args in calls if args is not None] if all(a is not None for _, a in calls) else None


def _list_docs(case: Case) -> list[Doc]:
    return [cast("Doc", {"name": tool.name, "parameters": tool.parameters}) for tool in case.trace.tools or ()]
