"""Score calls by UiPath's four tool-call evaluators: their number, order, arguments and results.

`service.core.methods.uipath_number` computes UiPath's own numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.alignment.chain import Fits, find_longest_chain, list_positions
from service.core.case import Case, Pair, build_call_path
from service.core.checks import WHOLE, Aspect, Check, Part, SubjectOutcome
from service.core.critics import OpenComparison
from service.core.expectations.count_limits import parse_limit
from service.core.expectations.expectation import CallPattern, ExpectedCall
from service.core.expectations.templates import match_template
from service.core.gates.compat import (
    add_idle_outcomes,
    bind_arguments,
    build_method_score,
    explain_hidden_arguments,
    fit_pattern,
    fits,
    fold_all_or_nothing,
    read_plain,
    read_plain_args,
    spend_on_pairs,
)
from service.core.gates.count import CountGate
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.tool_name import score_missing, score_name, score_unmatched, settle_pair
from service.core.json.values import format_value
from service.core.methods.uipath_number import (
    ToolId,
    read_output_text,
    sanitise,
    score_args,
    score_count,
    score_order,
    score_outputs,
)
from service.core.outcome import PERFECT, Errored, Finding, MethodScore, Outcome, Scored, Skipped, build_failure
from service.core.trace import Step

ONE_SIDE_EMPTY = "if only one side names any call, UiPath gives 0; "


class UipathCountGate(Check):
    """Check the limits of `counts`: the share of them that holds, or with `strict` 1.0 only if all hold.

    Each limit has UiPath's line of justification, as a finding: `count` where it is broken, `count_kept` where it holds. With
    `compat` in the rubric, the score is UiPath's own number, which knows no turns. Source: UiPath's tool call count evaluator.
    """

    kind: Literal["uipath_tool_call_count"] = "uipath_tool_call_count"
    has_own_number: ClassVar[bool] = True
    reads: ClassVar[frozenset[Aspect]] = frozenset({"counts"})
    strict: bool = False

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for each scope that names limits; with `compat`, one for the trace."""
        case = _name_by_id(case)
        counts = case.expectation.counts if case.expectation else {}
        if not case.matching.compat or not counts:
            return CountGate(mode="strict" if self.strict else "proportional").score_limits(case, report_kept=True)
        limits = {tool: parse_limit(count) for tool, count in counts.items()}
        raw = score_count(_list_names(case), limits, strict=self.strict)
        why = ONE_SIDE_EMPTY + "here a limit of 0 is kept by not calling"
        return [(WHOLE, _build_method_score(self, case, raw, why))]


class UipathOrderGate(Check):
    """Score the order: the longest common subsequence of tool names over the names in `ordered`.

    With `strict`, 1.0 only if both sequences are the same; without it, extra calls cost nothing. The calls of an `any_order`
    group may come in any order among themselves. Findings: `out_of_order` for a call that was made, but not in its place,
    `missing_call` for one that was not made. Source: UiPath's tool call order evaluator.
    """

    kind: Literal["uipath_tool_call_order"] = "uipath_tool_call_order"
    has_own_number: ClassVar[bool] = True
    reads: ClassVar[frozenset[Aspect]] = frozenset({"none", "order"})
    strict: bool = False

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        case = _name_by_id(case)
        placed = [n for n, one in enumerate(case.expected_calls) if one.position is not None]
        idle = add_idle_outcomes([], case)
        if not placed and not isinstance(idle[0][1], Scored):
            return [(WHOLE, Skipped("not_applicable", "no order was expected"))]
        if case.matching.compat:
            case.meter.spend("comparisons", len(placed) * len(case.trace.steps))
            expected = [case.expected_calls[n].options[0][1].tool for n in placed]
            raw = score_order(_list_names(case), expected, strict=self.strict)
            return [(WHOLE, _build_method_score(self, case, raw, OTHERWISE_NAMED))]
        return add_idle_outcomes([(WHOLE, self._score_order(case, placed))] if placed else [], case)

    def _score_order(self, case: Case, placed: list[int]) -> Outcome:
        required = [n for n in placed if case.expected_calls[n].required]
        steps, fits = range(len(case.trace.steps)), _build_fits(case)
        chain = find_longest_chain(list_positions(case.expected_calls, required), steps, fits, meter=case.meter)
        share = len(chain) / len(required) if required else 1.0
        whole = find_longest_chain(list_positions(case.expected_calls, placed), steps, fits, meter=case.meter)
        exact = share == 1.0 and len(whole) == len(case.trace.steps)
        if exact or (share == 1.0 and not self.strict):
            names = " then ".join(
                [case.trace.steps[chain[n]].call.name for n in required if n in chain][:MAX_NAMES_SHOWN]
            )
            return _justify(f"in order: {names}", "/steps")
        findings = [_explain_out_of_place(case, n, chain) for n in required if n not in chain]
        findings += [] if findings else _build_extra_findings(case, whole)
        return build_failure(0.0 if self.strict else share, *findings)


MAX_NAMES_SHOWN = 20
"""At most this many of the tools called in order are named."""


def _justify(text: str, path: str) -> Outcome:
    """Build a pass with its justification."""
    return PERFECT.add_findings(Finding("justification", text, path))


OTHERWISE_NAMED = (
    ONE_SIDE_EMPTY + "it strips names of odd characters; here groups, alternatives and turns of the expectation count"
)


class UipathArgsGate(Check):
    """Score the share of expected calls that were made with their arguments; with `strict`, 1.0 only if all were.

    Calls are paired optimally; values are compared by typed equality or matchers. An unexpected argument fails the call,
    unless `subset` (or the pattern's `extra_args: allow`) allows it. With `compat` in the rubric, the score is UiPath's own
    number. Findings: `wrong_argument`, `missing_argument`, `extra_argument`, `unparsable_arguments`, `missing_call`.
    Source: UiPath's tool call args evaluator.
    """

    kind: Literal["uipath_tool_call_args"] = "uipath_tool_call_args"
    has_own_number: ClassVar[bool] = True
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "extra", "tools"})
    strict: bool = False
    subset: bool = False
    """Whether arguments beyond the expected ones are allowed."""

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for each pair, missing call and extra call; with `strict` or `compat`, one for the trace."""
        case = _name_by_id(case)
        if not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        if case.matching.compat:
            return [(WHOLE, self._score_upstream(case))]
        pairs = [
            (case.subjects[pair.step], settle_pair(case, pair, self._score_pair(case, pair)))
            for pair in case.alignment.pairs
        ]
        outcomes = add_idle_outcomes([*pairs, *score_unmatched(case)], case)
        return fold_all_or_nothing(outcomes) if self.strict else outcomes

    def score_pair(self, case: Case, pattern: CallPattern, step: Step) -> float:
        """Return 1.0 if the call has the pattern's arguments, else 0.0."""
        return float(fits(case, pattern, step, extra=self._allows_extra(pattern)))

    def is_plain(self, case: Case, pattern: CallPattern) -> bool:
        """Whether every argument is compared by equality, with no matcher."""
        return all(bound.critic is None for bound in bind_arguments(case, pattern))

    def _allows_extra(self, pattern: CallPattern) -> bool:
        return self.subset if pattern.extra_args is None else pattern.extra_args == "allow"

    def _score_pair(self, case: Case, pair: Pair) -> Outcome:
        right_tool = score_name(case, pair)
        if not right_tool.passed:
            return right_tool
        fit = fit_pattern(case, pair.pattern, case.trace.steps[pair.step], extra=self._allows_extra(pair.pattern))
        if fit.open:
            return fit.open
        if fit.findings:
            return build_failure(0.0, *fit.findings)
        step = case.trace.steps[pair.step]
        text = f"{step.call.name}: the expected arguments were given: {format_value(step.call.arguments)}"
        return _justify(text, f"{build_call_path(step)}/arguments")

    def _score_upstream(self, case: Case) -> Outcome:
        if hidden := explain_hidden_arguments(case):
            return hidden
        spend_on_pairs(case, each=8)
        expected = [(pattern.tool, read_plain_args(path, pattern, "UiPath")) for path, pattern in _list_patterns(case)]
        calls = [(_get_call_name(step), step.call.arguments or {}) for step in case.trace.steps]
        raw = score_args(calls, expected, strict=self.strict)
        why = (
            "there arguments nobody expects are free, true is 1, calls are paired greedily and broken arguments are {}"
        )
        return _build_method_score(self, case, raw, why)


class UipathOutputGate(Check):
    """Score the share of expected calls that returned their `result`; with `strict`, all must, each tool's calls in order.

    A result matches by typed equality, or as its matcher says; an expected text is also compared with the `content` of an
    object. With `compat` in the rubric, the score is UiPath's own number, from texts. Findings: `wrong_result`,
    `missing_call`, `wrong_tool`. Source: UiPath's tool call output evaluator.
    """

    kind: Literal["uipath_tool_call_output"] = "uipath_tool_call_output"
    has_own_number: ClassVar[bool] = True
    looks_at: ClassVar[frozenset[Part]] = frozenset({"call", "result"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"none", "result"})
    strict: bool = False

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for each expected result; with `strict` or `compat`, one for the trace."""
        case = _name_by_id(case)
        due = [(path, pattern) for path, pattern in _list_patterns(case) if pattern.result is not None]
        fault = case.trace.state.fault if case.trace.state else None
        if due and fault is not None and any(step.result is None for step in case.trace.steps):
            return [(WHOLE, Errored("sandbox", fault))]
        idle = add_idle_outcomes([], case)
        if not due and not isinstance(idle[0][1], Scored):
            return [(WHOLE, Skipped("not_applicable", "no result was expected"))]
        if case.matching.compat:
            return [(WHOLE, self._score_upstream(case, due))]
        outcomes = add_idle_outcomes(_score_in_sequence(case) if self.strict else _score_aligned(case), case)
        return fold_all_or_nothing(outcomes) if self.strict else outcomes

    def score_pair(self, case: Case, pattern: CallPattern, step: Step) -> float:  # noqa: ARG002
        """Return the score of the result, so that calls of one tool are paired by what they returned."""
        if pattern.result is None:
            return 0.0
        outcome = _score_result(pattern, step)
        return outcome.value if isinstance(outcome, Scored) else 0.0

    def _score_upstream(self, case: Case, due: list[tuple[str, CallPattern]]) -> Outcome:
        spend_on_pairs(case, each=8)
        expected = [(p.tool, _convert_to_text(read_plain(f"{path}/result", p.result, "UiPath"))) for path, p in due]
        outputs = [
            (_get_call_name(step), read_output_text(step.result.content, step.result.text) if step.result else "")
            for step in case.trace.steps
        ]
        raw = score_outputs(outputs, expected, strict=self.strict)
        why = (
            ONE_SIDE_EMPTY + "it compares texts, reads an object as its content, and what is empty or false as no text"
        )
        return _build_method_score(self, case, raw, why)


def _convert_to_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else str(value)


def _build_method_score(check: Check, case: Case, raw: float, why: str) -> MethodScore:
    return build_method_score(check, case, raw, system="UiPath", why=_explain_names(case) or why)


def _explain_names(case: Case) -> str | None:
    """Explain how UiPath identifies a tool differently from us; None if it does not."""
    expected = _find_expected_names(case)
    actual = {step.call.name for step in case.trace.steps}
    if any(step.call.tool_id is not None and step.call.name in expected for step in case.trace.steps):
        return "it compares the id of a call's tool, and not its name, where there is one"
    plain = {sanitise(name) for name in expected - actual} & {sanitise(name) for name in actual - expected}
    return f"it strips names of odd characters, so that {min(plain)} is the same tool" if plain else None


def _find_expected_names(case: Case) -> set[str]:
    """Return the names of all tools that the expectation lists or counts."""
    listed = {pattern.tool for expected_call in case.expected_calls for _, pattern in expected_call.options}
    return listed | {tool for _, scope, _ in case.scopes for tool in scope.counts}


def _list_names(case: Case) -> list[str]:
    return [_get_call_name(step) for step in case.trace.steps]


def _get_call_name(step: Step) -> str:
    return step.call.name if step.call.tool_id is None else ToolId(step.call.tool_id)


def _name_by_id(case: Case) -> Case:
    """Return the case with calls named by the id of their tool, where the expectation names tools by id."""
    if all(step.call.tool_id is None for step in case.trace.steps):
        return case
    return case.once("named by id", lambda: _rename_calls(case))


def _rename_calls(case: Case) -> Case:
    expected = _find_expected_names(case)
    steps = [
        replace(step, call=replace(step.call, name=step.call.tool_id)) if step.call.tool_id in expected else step
        for step in case.trace.steps
    ]
    return Case(replace(case.trace, steps=tuple(steps)), case.expectation, case.matching)


def _list_patterns(case: Case) -> list[tuple[str, CallPattern]]:
    return [expected_call.options[0] for expected_call in case.expected_calls]


def is_call_for(case: Case, expected_call: ExpectedCall, step: Step) -> bool:
    """Whether a step calls a tool of the expected call, in its turn."""
    in_turn = expected_call.turn is None or expected_call.turn == step.turn
    return in_turn and any(case.is_same_name(pattern.tool, step.call.name) for _, pattern in expected_call.options)


def _build_fits(case: Case) -> Fits:
    return lambda expected, call: (
        call in case.once(("is_for", expected), lambda: _find_calls_for(case, case.expected_calls[expected]))
    )


def _find_calls_for(case: Case, expected_call: ExpectedCall) -> frozenset[int]:
    """Return the steps that call a tool of the expected call, in its turn."""
    keys = dict.fromkeys([case.make_name_key(pattern.tool) for _, pattern in expected_call.options])
    steps = [case.trace.steps[j] for key in keys for j in case.worths.find_steps(key)]
    return frozenset([step.index for step in steps if expected_call.turn in (None, step.turn)])


def _explain_out_of_place(case: Case, n: int, chain: Mapping[int, int]) -> Finding:
    """Explain why an expected call has no place in the chain."""
    expected_call, used = case.expected_calls[n], set(chain.values())
    case.meter.spend("comparisons", len(case.trace.steps))
    steps = [case.trace.steps[j] for j in sorted(_find_calls_for(case, expected_call) - used)]
    if not steps:
        return Finding("missing_call", f"{expected_call.tools} was expected and not called", expected_call.path)
    return Finding("out_of_order", f"{expected_call.tools} came out of order", build_call_path(steps[0]))


def _build_extra_findings(case: Case, chain: Mapping[int, int]) -> list[Finding]:
    used = set(chain.values())
    extra = [step for step in case.trace.steps if step.index not in used]
    return [Finding("extra_call", f"{step.call.name} was not expected", build_call_path(step)) for step in extra]


def _score_aligned(case: Case) -> Iterable[SubjectOutcome]:
    """Score every expected result by the call aligned with it."""
    for pair in case.alignment.pairs:
        if pair.pattern.result is not None:
            right_tool, step = score_name(case, pair), case.trace.steps[pair.step]
            outcome = _score_result(pair.pattern, step) if right_tool.passed else right_tool
            yield case.subjects[step.index], settle_pair(case, pair, outcome)
    for i in case.alignment.missing:
        if case.expected_calls[i].options[0][1].result is not None:
            yield score_missing(case, i)


def _score_in_sequence(case: Case) -> Iterable[SubjectOutcome]:
    """Score every expected result by the first call of its tool that is still unused."""
    unused = list(case.trace.steps)
    for i, expected_call in enumerate(case.expected_calls):
        pattern = expected_call.options[0][1]
        case.meter.spend("comparisons", 4 * len(unused))
        step = next((step for step in unused if is_call_for(case, expected_call, step)), None)
        if pattern.result is None or (step is None and not expected_call.required):
            continue
        if step is None:
            yield score_missing(case, i)
            continue
        unused = [other for other in unused if other is not step]
        yield case.subjects[step.index], _score_result(pattern, step)


def _score_result(pattern: CallPattern, step: Step) -> Outcome:
    """Score the result of a call against the pattern's."""
    if step.result is None:
        return Skipped("not_captured", "the trace does not say what the call returned")
    content = step.result.content
    if isinstance(pattern.result, str) and isinstance(content, Mapping) and "content" in content:
        content = content["content"]
    if isinstance(pattern.result, str) and not isinstance(content, str) and step.result.text is not None:
        content = step.result.text
    match = match_template(pattern.result, content)
    if isinstance(match, OpenComparison):
        return Skipped(match.cause, match.reason)
    code, message = "justification", f"{step.call.name}: the expected result came: {format_value(content)}"
    if not match.passed:
        code, message = "wrong_result", match.note
    return Scored(match.value, match.passed, (Finding(code, message, f"/steps/{step.index}/result/content"),))
