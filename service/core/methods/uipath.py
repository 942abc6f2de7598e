"""Score calls by UiPath's four tool-call evaluators: their number, order, arguments and results.

Source: UiPath/uipath-python, `packages/uipath/src/uipath/eval/_helpers/evaluators_helpers.py`. With `compat`, the same sums run
by their rules: a tool is compared by its id or its name without odd characters, values as Python does (true is 1), arguments
that are no object are {} and unexpected ones free, an expected call takes the first call that fits, results are texts, and if
only one side names any call the score is 0, even for a tool that must not be called and was not.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sized
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import JsonValue

from service.core.alignment.chain import Fits, Pairs, find_longest_chain, list_positions
from service.core.case import Case, Pair, build_call_path
from service.core.checks import WHOLE, Aspect, Part, SubjectOutcome
from service.core.critics import OpenComparison
from service.core.expectations.count_limits import parse_limit
from service.core.expectations.expectation import CallPattern
from service.core.expectations.templates import match_template
from service.core.gates import published
from service.core.gates.count import CountGate
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.gates.tool_name import score_missing, score_name, score_pairs, score_unmatched
from service.core.json.values import format_value
from service.core.outcome import PERFECT, Errored, Finding, Outcome, Scored, Skipped, build_failure
from service.core.trace import Step

ONE_SIDE_EMPTY = "if only one side names any call, UiPath gives 0; "
MAX_NAMES_SHOWN = 20
"""At most this many of the tools called in order are named."""
NO_RESULT = Skipped("not_applicable", "no result was expected")


class _ToolCallGate(published.PublishedCheck):
    system: ClassVar[str] = "UiPath"
    strict: bool = False

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Look at the case, in which a call is named by the id of its tool if the expectation names the tool so."""
        if all(step.call.tool_id is None for step in case.trace.steps):
            return self._look(case)
        return self._look(case.once("named by id", lambda: _name_by_id(case)))

    @abstractmethod
    def _look(self, case: Case) -> Iterable[SubjectOutcome]: ...

    def _share(self, good: int, due: Sized, made: Sized) -> float:
        """Return the share of what was due that is good; strict: 1.0 only if all is. Nothing due: 1.0 if no call was made."""
        if not len(due):
            return float(not len(made))
        return float(good == len(due)) if self.strict else good / len(due)

    def give_own_number(self, case: Case, raw: float, why: str) -> list[SubjectOutcome]:
        """Give UiPath's number. A difference is explained first by how UiPath identifies tools, if it does so differently."""
        expected, actual = _find_expected_names(case), {step.call.name for step in case.trace.steps}
        plain = {sanitise(name) for name in expected - actual} & {sanitise(name) for name in actual - expected}
        if plain:
            why = f"it strips names of odd characters, so that {min(plain)} is the same tool"
        if any(step.call.tool_id is not None and step.call.name in expected for step in case.trace.steps):
            why = "it compares the id of a call's tool, and not its name, where there is one"
        return super().give_own_number(case, raw, why)


class UipathCountGate(_ToolCallGate):
    """Check the limits of `counts`: the share of them that holds, or with `strict` 1.0 only if all hold.

    Each limit has UiPath's line of justification, as a finding: `count` where it is broken, `count_kept` where it holds. With
    `compat` in the rubric, the score is UiPath's own number, which knows no turns. Source: UiPath's tool call count evaluator.
    """

    kind: Literal["uipath_tool_call_count"] = "uipath_tool_call_count"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"counts"})

    def _look(self, case: Case) -> Iterable[SubjectOutcome]:
        counts = case.expectation.counts if case.expectation else {}
        if not case.matching.compat or not counts:
            return CountGate(mode="strict" if self.strict else "proportional").score_limits(case, report_kept=True)
        calls = [step.call for step in case.trace.steps]
        made = Counter([call.name if call.tool_id is None else call.tool_id for call in calls])
        found = {tool: made.get(tool, made[sanitise(tool)]) for tool in counts}
        kept = [tool for tool, count in counts.items() if made and parse_limit(count).holds(found[tool])]
        why = ONE_SIDE_EMPTY + "here a limit of 0 is kept by not calling"
        return self.give_own_number(case, self._share(len(kept), counts, made), why)


class UipathOrderGate(_ToolCallGate):
    """Score the order: the longest common subsequence of tool names over the names in `ordered`.

    With `strict`, 1.0 only if both sequences are the same; without it, extra calls cost nothing. The calls of an `any_order`
    group may come in any order among themselves. Findings: `out_of_order` for a call that was made, but not in its place,
    `missing_call` for one that was not made. Source: UiPath's tool call order evaluator.
    """

    kind: Literal["uipath_tool_call_order"] = "uipath_tool_call_order"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"none", "order"})

    def _look(self, case: Case) -> Iterable[SubjectOutcome]:
        placed = [n for n, one in enumerate(case.expected_calls) if one.position is not None]
        if not placed and not isinstance(published.add_idle_outcomes([], case)[0][1], Scored):
            return [(WHOLE, Skipped("not_applicable", "no order was expected"))]
        if not case.matching.compat:
            return published.add_idle_outcomes([(WHOLE, self._score_order(case, placed))] if placed else [], case)
        patterns, steps = published.list_patterns(case), case.trace.steps
        chain = _find_chain(case, [[n] for n in placed], lambda n, j: is_same_tool(steps[j], patterns[n][1].tool))
        good = 0 if self.strict and len(chain) < len(steps) else len(chain)
        why = "it strips names of odd characters; here groups, alternatives and turns of the expectation count"
        return self.give_own_number(case, self._share(good, placed, steps), ONE_SIDE_EMPTY + why)

    def _score_order(self, case: Case, placed: list[int]) -> Outcome:
        steps, required = case.trace.steps, [n for n in placed if case.expected_calls[n].required]
        named = {n: case.find_candidate_steps(n) for n in placed}
        positions = [list_positions(case.expected_calls, indices) for indices in (required, placed)]
        chain, whole = (_find_chain(case, one, lambda n, j: j in named[n]) for one in positions)
        unmet = [n for n in required if n not in chain]
        if not unmet and (len(whole) == len(steps) or not self.strict):
            names = " then ".join([steps[chain[n]].call.name for n in required][:MAX_NAMES_SHOWN])
            return PERFECT.add_findings(Finding("justification", f"in order: {names}", "/steps"))
        used = set((chain if unmet else whole).values())
        findings: list[Finding] = []
        for n in unmet:
            one, spare = case.expected_calls[n], sorted(named[n] - used)
            finding = Finding("missing_call", f"{one.tools} was expected and not called", one.path)
            if spare:
                finding = Finding("out_of_order", f"{one.tools} came out of order", build_call_path(steps[spare[0]]))
            findings.append(finding)
        extra = [] if unmet else [step for step in steps if step.index not in used]
        findings += [Finding("extra_call", f"{one.call.name} was not expected", build_call_path(one)) for one in extra]
        return build_failure(0.0 if self.strict else len(chain) / len(required), *findings)


def _find_chain(case: Case, positions: list[list[int]], fits: Fits) -> Pairs:
    return find_longest_chain(positions, range(len(case.trace.steps)), fits, meter=case.meter)


class UipathArgsGate(_ToolCallGate, published.FittingCheck):
    """Score the share of expected calls that were made with their arguments; with `strict`, 1.0 only if all were.

    Calls are paired optimally; values are compared by typed equality or matchers. An unexpected argument fails the call,
    unless `subset` (or the pattern's `extra_args: allow`) allows it. With `compat` in the rubric, the score is UiPath's own
    number. Findings: `wrong_argument`, `missing_argument`, `extra_argument`, `unparsable_arguments`, `missing_call`.
    Source: UiPath's tool call args evaluator.
    """

    kind: Literal["uipath_tool_call_args"] = "uipath_tool_call_args"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "extra", "tools"})
    subset: bool = False
    """Whether arguments beyond the expected ones are allowed."""

    def allows_extra(self, pattern: CallPattern) -> bool:
        """Whether arguments beyond the pattern's are allowed."""
        return self.subset if pattern.extra_args is None else pattern.extra_args == "allow"

    def _look(self, case: Case) -> Iterable[SubjectOutcome]:
        if not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        if not case.matching.compat:
            pairs = score_pairs(case, lambda pair: self._score_pair(case, pair))
            outcomes = published.add_idle_outcomes([*pairs, *score_unmatched(case)], case)
            return published.fold_all_or_nothing(outcomes) if self.strict else outcomes
        if hidden := published.explain_hidden_arguments(case):
            return [(WHOLE, hidden)]
        published.spend_on_pairs(case, each=8)
        expected, steps = self.list_plain_calls(case), case.trace.steps

        def fits(n: int, j: int) -> bool:
            given = steps[j].call.arguments or {}
            same = all(name in given and given[name] == value for name, value in expected[n][1].items())
            return same and is_same_tool(steps[j], expected[n][0])

        found = published.pair_greedily(range(len(expected)), range(len(steps)), fits)
        why = "there unexpected arguments are free, true is 1, calls are paired greedily and broken arguments are {}"
        return self.give_own_number(case, self._share(len(found), expected, steps), why)

    def _score_pair(self, case: Case, pair: Pair) -> Outcome:
        outcome, step = self.score_fit(case, pair), case.trace.steps[pair.step]
        if not isinstance(outcome, Scored) or not outcome.passed:
            return outcome
        text = f"{step.call.name}: the expected arguments were given: {format_value(step.call.arguments)}"
        return PERFECT.add_findings(Finding("justification", text, f"{build_call_path(step)}/arguments"))


class UipathOutputGate(_ToolCallGate):
    """Score the share of expected calls that returned their `result`; with `strict`, all must, each tool's calls in order.

    A result matches by typed equality, or as its matcher says; an expected text is also compared with the `content` of an
    object. With `compat` in the rubric, the score is UiPath's own number, from texts. Findings: `wrong_result`,
    `missing_call`, `wrong_tool`. Source: UiPath's tool call output evaluator.
    """

    kind: Literal["uipath_tool_call_output"] = "uipath_tool_call_output"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"call", "result"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"none", "result"})

    def _look(self, case: Case) -> Iterable[SubjectOutcome]:
        due = {n: one for n, one in enumerate(published.list_patterns(case)) if one[1].result is not None}
        fault = case.trace.state.fault if case.trace.state else None
        if due and fault is not None and any(step.result is None for step in case.trace.steps):
            return [(WHOLE, Errored("sandbox", fault))]
        if not due and not isinstance(published.add_idle_outcomes([], case)[0][1], Scored):
            return [(WHOLE, NO_RESULT)]
        if case.matching.compat:
            return self._compare_texts(case, due)
        if self.strict:
            return published.fold_all_or_nothing(published.add_idle_outcomes(self._score_in_sequence(case, due), case))

        def score(pair: Pair) -> Outcome:
            right_tool = score_name(case, pair)
            return _score_result(pair.pattern, case.trace.steps[pair.step]) if right_tool.passed else right_tool

        pairs = [pair for pair in case.alignment.pairs if pair.pattern.result is not None]
        missing = [score_missing(case, n) for n in case.alignment.missing if n in due]
        return published.add_idle_outcomes([*score_pairs(case, score, pairs), *missing], case)

    def score_pair(self, case: Case, pattern: CallPattern, step: Step) -> float:  # noqa: ARG002
        """Return the score of the result, so that calls of one tool are paired by what they returned."""
        outcome = NO_RESULT if pattern.result is None else _score_result(pattern, step)
        return outcome.value if isinstance(outcome, Scored) else 0.0

    def _score_in_sequence(self, case: Case, due: Mapping[int, tuple[str, CallPattern]]) -> Iterable[SubjectOutcome]:
        """Score every expected result by the first call of its tool that is still unused."""
        published.spend_on_pairs(case, each=4)
        steps, named = case.trace.steps, {n: case.find_candidate_steps(n) for n in due}
        pairs = published.pair_greedily(due, range(len(steps)), lambda n, j: j in named[n])
        for n, (_, pattern) in due.items():
            if n in pairs:
                yield case.subjects[pairs[n]], _score_result(pattern, steps[pairs[n]])
            elif case.expected_calls[n].required:
                yield score_missing(case, n)

    def _compare_texts(self, case: Case, due: Mapping[int, tuple[str, CallPattern]]) -> list[SubjectOutcome]:
        published.spend_on_pairs(case, each=8)
        steps = case.trace.steps
        plain = {n: self.read_plain(f"{path}/result", one.result) for n, (path, one) in due.items()}
        wanted = {n: value if isinstance(value, str) else str(value) for n, value in plain.items()}
        texts = [read_output_text(step.result.content, step.result.text) if step.result else "" for step in steps]

        def fits(n: int, j: int) -> bool:
            return is_same_tool(steps[j], due[n][1].tool) and (self.strict or texts[j] == wanted[n])

        found = published.pair_greedily(due, range(len(steps)), fits)
        good = sum([texts[j] == wanted[n] for n, j in found.items()])
        why = "it compares texts, reads an object as its content, and what is empty or false as no text"
        return self.give_own_number(case, self._share(good, due, steps), ONE_SIDE_EMPTY + why)


def _score_result(pattern: CallPattern, step: Step) -> Outcome:
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


def read_output_text(content: JsonValue, text: str | None = None) -> str:
    """Return a result as UiPath reads it from a span: an object's `content` ("" if that is empty or false), else the text.

    `text` is the span's own text, if it had one; UiPath reads it as JSON only for an object.

    >>> [read_output_text(content) for content in ({"content": {"a": 1}}, {"content": 0}, {"a": 1}, "ok", 0)]
    ["{'a': 1}", '', '', 'ok', '0']
    """
    if isinstance(content, Mapping):
        inner = content.get("content")
        return str(inner) if inner else ""
    if text is not None:
        return text
    return content if isinstance(content, str) else json.dumps(content)


def _find_expected_names(case: Case) -> set[str]:
    listed = {pattern.tool for expected_call in case.expected_calls for _, pattern in expected_call.options}
    return listed | {tool for _, scope, _ in case.scopes for tool in scope.counts}


def _name_by_id(case: Case) -> Case:
    expected = _find_expected_names(case)
    steps = [
        replace(step, call=replace(step.call, name=step.call.tool_id)) if step.call.tool_id in expected else step
        for step in case.trace.steps
    ]
    return Case(replace(case.trace, steps=tuple(steps)), case.expectation, case.matching)


def is_same_tool(step: Step, expected: str) -> bool:
    """Whether to UiPath a call is of the expected tool: by the tool's id where the call has one, else by sanitised names."""
    made, tool_id = step.call.name, step.call.tool_id
    return sanitise(made) == sanitise(expected) if tool_id is None else tool_id == expected


def sanitise(name: str) -> str:
    """Return a tool name as UiPath compares it: without odd characters, at most 64 characters, case kept.

    >>> sanitise("Web  Search!"), sanitise("web.search")
    ('Web_Search', 'websearch')
    """
    return re.sub(r"[^a-zA-Z0-9_-]", "", "_".join(name.split()))[:64]
