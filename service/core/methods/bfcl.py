"""The Berkeley Function-Calling Leaderboard's checks: of calls (AST), of agentic answers, and of the results of several turns.

Source: ShishirPatil/gorilla, `bfcl_eval/eval_checker` (v4). The AST verdicts are always the leaderboard's, leniencies and greedy
matching included. Where a malformed answer key makes that code raise, this one goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, Literal, cast

from pydantic import JsonValue

from service.core.alignment.chain import find_fullest
from service.core.case import Case
from service.core.checks import WHOLE, Aspect, Part, SubjectOutcome
from service.core.critics import AnyOf, Critic, Exact, Match, OpenComparison
from service.core.expectations.expectation import CallPattern
from service.core.expectations.result_match import match_result
from service.core.expectations.templates import Template
from service.core.gates import published
from service.core.gates.answer import AnswerGate, score_silence
from service.core.gates.decide import NOTHING_EXPECTED
from service.core.json.members import list_elements
from service.core.json.pointers import escape_token
from service.core.outcome import PERFECT, Finding, Outcome, Scored, Skipped, build_failure
from service.errors import InputError

Answer = Mapping[str, object]
"""One expected call: `{function: {parameter: [accepted values]}}`; "" among the accepted values marks it as optional."""
Functions = Mapping[str, object]
"""The parameters of each function on offer: `{"type": "dict", "properties": {...}, "required": [...]}`."""
NamedAnswer = tuple[str, object]
"""The function of an answer, and what its parameters accept."""
Call = tuple[str, Mapping[str, JsonValue]]
ExpectedTurn = tuple[int, str, Sequence[CallPattern]]
"""A turn, the pointer of its scope, and the calls expected in it."""

STRIPPED_BEFORE = "it takes punctuation out of numbers too, so that 3.14 is 314, and reads the last text that was said"
UNTYPED = (
    "there true is 1, calls in a turn in which none is due cost nothing, "
    "and what the state has beyond the wanted attributes is not seen"
)
MAX_REASONS = 20
"""At most this many calls that do not fit an answer are named."""
TYPES: Mapping[str, type] = {
    "string": str,
    "integer": int,
    "float": float,
    "number": float,
    "boolean": bool,
    "array": list,
    "tuple": list,
    "dict": dict,
    "object": dict,
    "any": str,
}
"""BFCL's type names, with JSON Schema's names for two of them. To BFCL, "any" means a string."""


class BfclAstGate(published.PublishedCheck):
    """Run the AST check of the Berkeley Function-Calling Leaderboard: 1.0 or 0.0 for the trace, as on the leaderboard.

    Takes BFCL gold (`{"format": "bfcl"}`) or plain expected calls. The arguments of the latter must be values, `exact`, or
    `any_of` exact ones; another matcher is an InputError, since the method knows accepted values alone. So is a category of
    Java or JavaScript, whose values would need conversion. Findings carry the reason: `wrong_count`, `wrong_name`,
    `missing_required`, `unexpected_argument`, `type_error`, `value_error`, `missing_optional`, `no_match`, `over_call`.
    Source: ShishirPatil/gorilla, `ast_checker.py`.
    """

    kind: Literal["bfcl_ast"] = "bfcl_ast"
    system: ClassVar[str] = "BFCL"
    reads: ClassVar[frozenset[Aspect]] = frozenset({"args", "extra", "tools"})
    category: str | None = None
    """BFCL's category, which picks the rule. Absent: the gold's category, else the number of expected calls decides."""

    def look(self, case: Case) -> list[SubjectOutcome]:
        """Return one outcome for the trace."""
        if case.expectation is None or not case.lists_calls:
            return [(WHOLE, NOTHING_EXPECTED)]
        gold = case.expectation.gold or {}
        answers: Sequence[Answer] | None = gold.get("possible_answer")
        if not published.read_gold(case, "bfcl"):
            answers = [
                {p.tool: {n: _list_accepted(f"{path}/args/{n}", value) for n, value in (p.args or {}).items()}}
                for path, p in published.list_patterns(case)
            ] or None
        category = self.category or gold.get("category")
        if "java" in (category or ""):
            raise InputError.at("/expected/category", f"{category}: of BFCL's languages only Python is carried")
        published.spend_on_pairs(case, each=16)
        made, functions = case.trace.steps, {tool.name: tool.parameters for tool in case.trace.tools or ()}
        calls = [(step.call.name, step.call.arguments) for step in made if step.call.arguments is not None]
        problem = check(answers, calls if len(calls) == len(made) else None, functions, category=category)
        return [(WHOLE, build_failure(0.0, problem) if problem else PERFECT)]


def _list_accepted(path: str, value: object) -> list[JsonValue]:
    """List the values that pass, with "" last where the argument is optional, as BFCL writes it."""
    if not isinstance(value, Critic):
        return [cast("JsonValue", value)]
    options = value.of if isinstance(value, AnyOf) else (value,)
    exact = [option for option in options if isinstance(option, Exact)]
    if len(exact) < len(options):
        raise InputError.at(path, "BFCL's method compares with accepted values: a value, exact, or any_of exact")
    return [*(option.value for option in exact), *([""] if value.optional else [])]


def check(
    answers: Sequence[Answer] | None, calls: Sequence[Call] | None, functions: Functions, *, category: str | None = None
) -> Finding | None:
    """Give BFCL's verdict on the calls of one single-turn question: None if they are valid, else the reason.

    `answers`: the expected calls; None for a question that no function fits, where making no call is right (and, as upstream,
    so is output that cannot be read). `calls`: None if the output did not decode. `category` picks the rule by its name, as
    upstream (parallel, else multiple, else simple; `live_relevance` expects any call, the other relevance categories expect
    none); without it, the numbers of answers and functions decide.
    Raises InputError for a parameter type that BFCL does not know.
    """
    if category == "live_relevance":
        return None if calls else Finding("wrong_count", "a call was expected, none decodes", "/steps")
    if answers is None or (category or "").endswith("relevance"):
        message = f"no function fits the question, {calls[0][0]} was called" if calls else ""
        return Finding("over_call", message, "/steps/0/call") if calls else None
    rule = "parallel" if len(answers) != 1 else "simple" if len(functions) == 1 else "multiple"
    if category is not None:
        rule = next((rule for rule in ("parallel", "multiple") if rule in category), "simple")
    count = 1 if rule == "simple" else len(answers)
    if calls is None or len(calls) != count:
        made = "the output does not decode" if calls is None else f"{len(calls)} made"
        code = "wrong_count" if count or calls is None else "over_call"
        return Finding(code, f"{count} calls expected, {made}", "/steps")
    named = [next(iter(answer.items()), ("", None)) for answer in answers]
    if rule == "parallel" or not answers:
        return _check_any_order(named, calls, functions)
    name = next(iter(functions), "") if rule == "simple" else named[0][0]
    return _check_call(name, named[0], calls[0], 0, functions)


def _check_any_order(answers: Sequence[NamedAnswer], calls: Sequence[Call], functions: Functions) -> Finding | None:
    """Give each answer the first free call that fits, for good: an earlier answer may take a later one's only call."""
    free = list(range(len(calls)))
    for n, answer in enumerate(answers):
        problems = {i: _check_call(answer[0], answer, calls[i], i, functions) for i in free}
        fitting = next((i for i, problem in problems.items() if problem is None), None)
        if fitting is None:
            reasons = [f"call {i}: {problem.message}" for i, problem in problems.items() if problem]
            message = f"no free call fits {answer[0]} ({'; '.join(reasons[:MAX_REASONS])})"
            return Finding("no_match", message, f"/expected/calls/{n}")
        free.remove(fitting)
    return None


def _check_call(name: str, answer: NamedAnswer, call: Call, step: int, functions: Functions) -> Finding | None:
    """Compare one call with one answer. The expected name is the function's, not the answer key's."""
    given, call_path = call[1], f"/steps/{step}/call"
    options_by_name = published.get_mapping(answer[1])
    if name not in functions or not isinstance(answer[1], Mapping):
        return Finding("wrong_name", f"the answer names {answer[0]!r}, which is not on offer", "/expected/calls")
    if call[0] != name:
        return Finding("wrong_name", f"{name} expected, {call[0]} called", f"{call_path}/name")
    accepted = {one: list_elements(options) for one, options in options_by_name.items()}
    listed = list_elements(published.get_mapping(functions[name]).get("required"))
    required = [one for one in listed if isinstance(one, str)]
    missing = next((one for one in required if one not in given), None)
    if missing is not None:
        return Finding("missing_required", f"{missing} is required", f"{call_path}/arguments")
    properties = published.list_properties(functions[name])
    for one, value in given.items():
        code, message = "unexpected_argument", f"{one} is not expected"
        if one in properties and one in accepted:
            code = _find_problem(value, accepted[one], published.get_mapping(properties[one]))
            message = f"{one} is {value!r}, accepted: {accepted[one]!r}"
        if code:
            return Finding(code, message, f"{call_path}/arguments/{escape_token(one)}")
    absent = next((one for one, options in accepted.items() if one not in given and "" not in options), None)
    if absent is not None:
        return Finding("missing_optional", f"{absent} must be given for this question", f"{call_path}/arguments")
    return None


def _find_problem(
    value: JsonValue, accepted: Sequence[JsonValue], schema: Mapping[str, JsonValue]
) -> Literal["", "type_error", "value_error"]:
    """Return what is wrong with one argument: its type (by identity: True is not an integer), its value, or "" for nothing."""
    declared, items, inner = _get_type(schema), schema.get("items"), None
    if declared is list and isinstance(items, Mapping):
        inner = _get_type(items)
    if declared is float and type(value) is int:
        value = published.make_floats(value)
    key_type = _find_type(accepted)
    if type(value) is declared:
        # One level is checked: each item has the declared type or that of the option's first. An option that is no list accepts.
        nested = (
            not isinstance(option, list)
            or all(type(item) in (inner, _find_type(option)) for item in list_elements(value))
            for option in accepted
        )
        if inner is not None and not any(nested):
            return "type_error"
    elif key_type is None or type(value) is not key_type:
        return "type_error"
    if key_type not in (None, declared):  # the key holds a variable: its type counts instead of the declared one
        return "" if value in accepted else "value_error"
    return "" if _is_accepted(value, accepted, inner) else "value_error"


def _get_type(schema: Mapping[str, JsonValue]) -> type:
    name = schema.get("type")
    if not isinstance(name, str) or name not in TYPES:
        raise InputError.at("/functions", f"{name!r} is not a type BFCL knows; it knows {', '.join(TYPES)}")
    return TYPES[name]


def _find_type(accepted: Sequence[JsonValue]) -> type | None:
    return next((type(option) for option in accepted if option != ""), None)


def _is_accepted(value: JsonValue, accepted: Sequence[JsonValue], inner: type | None) -> bool:
    """Compare with the accepted values: texts standardised, lists whole and in order, objects by `_fits`.

    A text counts as the list of its characters, so that the optional marker accepts [].
    """
    if isinstance(value, list):
        options = [[*option] for option in accepted if isinstance(option, list | str | dict)]
        if inner is dict:
            return any(len(value) == len(option) and all(map(_fits, value, option)) for option in options)
        return [*map(standardise, value)] in [[*map(standardise, option)] for option in options]
    if isinstance(value, dict):
        return any(_fits(value, option) for option in accepted)
    if isinstance(value, str):
        return standardise(value) in [standardise(option) for option in accepted if isinstance(option, str)]
    return value in accepted


def standardise(value: JsonValue) -> JsonValue:
    """Return a text as BFCL compares it: without spaces and `,./-_*^`, in lower case, with one kind of quote; others as they are.

    >>> standardise("2024-1-11") == standardise("2024-11-1"), standardise("A ,./-_*^'b'")
    (True, 'a"b"')
    """
    return re.sub(r"[ ,./\-_*^]", "", value).lower().replace("'", '"') if isinstance(value, str) else value


def _fits(value: JsonValue, option: JsonValue) -> bool:
    """Compare one dict with `{key: [accepted values]}`; a nested dict must be equal as it stands."""
    if not isinstance(value, Mapping) or not isinstance(option, Mapping):
        return False
    accepted = {key: [standardise(item) for item in list_elements(items)] for key, items in option.items()}
    return all(key in accepted and standardise(item) in accepted[key] for key, item in value.items()) and all(
        key in value or "" in list_elements(items) for key, items in option.items()
    )


class BfclAgenticGate(published.PublishedCheck):
    """Look for an accepted answer in the final text, as a separate word or number: 1.0 if there is one, else 0.0.

    Takes BFCL's gold, with a list of texts as `possible_answer`, or any expected `answer`. With `compat` in the rubric, the
    score is the leaderboard's own verdict, from gold alone. Neither knows negation: "not Paris but Rome" contains Paris.
    Finding: `wrong_answer`. Source: ShishirPatil/gorilla, `agentic_checker.py`.
    """

    kind: Literal["bfcl_agentic"] = "bfcl_agentic"
    system: ClassVar[str] = "BFCL"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"text"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"answer"})

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        if not case.matching.compat:
            return AnswerGate().look(case)
        answers = published.read_gold(case, "bfcl").get("possible_answer")
        accepted = [one for one in answers if isinstance(one, str)] if isinstance(answers, list) else []
        if not accepted:
            return [(WHOLE, Skipped("not_applicable", "no gold of BFCL names accepted answers"))]
        texts = [message.text for message in case.trace.messages if message.role == "assistant" and message.text]
        if not texts:
            return [(WHOLE, score_silence(case, None))]
        case.meter.spend("characters", len(accepted) * len(texts[-1]) + sum(map(len, accepted)))
        raw = float(any(contains_answer(texts[-1], one) for one in accepted))
        return self.give_own_number(case, raw, STRIPPED_BEFORE)


def contains_answer(text: str, accepted: str) -> bool:
    """Whether BFCL finds an accepted answer in a text.

    >>> pairs = ("It is 3.14.", "314"), ("Not Paris but Rome", "paris"), ("Parisian", "Paris")
    >>> [contains_answer(*pair) for pair in pairs]
    [True, True, False]
    """
    text, accepted = (re.sub(r"[,./\-_*^()]", "", one).lower().replace("'", '"') for one in (text, accepted))
    return re.search(rf"\b{re.escape(accepted)}\b", text) is not None


class BfclMultiTurnGate(published.PublishedCheck):
    """Check every turn of `turns`: 1.0 if each turn with expected calls made some and has their `result`s by its end, else 0.0.

    Results may come in any order and among others; those of earlier turns count too, each for one. If a final state is
    expected, it must be that state. Unlike on the leaderboard, a call in a turn with `calls: none` fails too. With `compat` in
    the rubric, the score is the leaderboard's own verdict. Findings: `empty_turn`, `missing_result`, `over_call`, and those of
    the state. Source: ShishirPatil/gorilla, `multi_turn_checker.py`.
    """

    kind: Literal["bfcl_multi_turn"] = "bfcl_multi_turn"
    system: ClassVar[str] = "BFCL"
    looks_at: ClassVar[frozenset[Part]] = frozenset({"call", "result"})
    reads: ClassVar[frozenset[Aspect]] = frozenset({"result", "none", "some", "state"})

    def look(self, case: Case) -> Iterable[SubjectOutcome]:
        """Return one outcome for the trace."""
        turns = sorted(_list_turns(case), key=lambda one: one[0])
        idle = [turn for _, scope, turn in case.scopes if scope.no_calls and turn is not None]
        if not turns and not idle:
            return [(WHOLE, Skipped("not_applicable", "nothing is expected of single turns"))]
        needs_results = any(pattern.says_result for _, _, patterns in turns for pattern in patterns)
        if needs_results and any(step.result is None for step in case.trace.steps):
            return [(WHOLE, Skipped("not_captured", "the trace does not say what a call returned"))]
        case.meter.spend("comparisons", 8 * sum([len(one[2]) for one in turns]) * (1 + len(case.trace.steps)))
        state = published.score_state(case, is_same_world)
        outcomes: list[SubjectOutcome] = [(WHOLE, self._score_turn(case, *one)) for one in turns]
        if case.matching.compat:
            if not isinstance(state, Scored) and state.cause != "not_applicable":
                return [(WHOLE, state)]
            scores = [outcome for outcome in (state, *[one for _, one in outcomes]) if isinstance(outcome, Scored)]
            return self.give_own_number(case, float(all(score.passed for score in scores)), UNTYPED)
        for turn in idle:
            for step in case.find_steps(turn):
                message = f"{step.call.name} was called in turn {turn}, where no call was due"
                finding = Finding("over_call", message, f"/steps/{step.index}/call")
                outcomes.append((case.subjects[step.index], build_failure(0.0, finding)))
        return published.fold_all_or_nothing([*outcomes, (WHOLE, state)])

    def _score_turn(self, case: Case, turn: int, path: str, patterns: Sequence[CallPattern]) -> Outcome:
        """Score the results that a turn should have brought; with `compat` by Python's equality."""
        theirs, due = case.matching.compat, [pattern for pattern in patterns if pattern.says_result]
        values = [self.read_plain(f"{path}/calls", pattern.result) if theirs else pattern.result for pattern in due]
        absent = None if theirs else case.explain_missing_turn(turn)
        if absent is not None:
            return absent
        if not case.find_steps(turn):
            return build_failure(0.0, Finding("empty_turn", f"calls were due in turn {turn}, and none was made", path))
        results = [step.result.content for step in case.trace.steps if step.turn <= turn and step.result is not None]
        matches = [[_compare(value, content, theirs=theirs) for content in results] for value in values]
        met = [[isinstance(match, Match) and match.passed for match in row] for row in matches]
        pairs = find_fullest(range(len(due)), range(len(results)), lambda n, m: met[n][m], meter=case.meter)
        for n, pattern in enumerate(due):
            if n not in pairs:
                open_ones = [one for one in matches[n] if isinstance(one, OpenComparison)]
                finding = Finding("missing_result", f"{pattern.tool}: its result has not come", path)
                return Skipped(open_ones[0].cause, open_ones[0].reason) if open_ones else build_failure(0.0, finding)
        return PERFECT


def is_same_world(actual: JsonValue, expected: JsonValue) -> bool:
    """Whether BFCL finds every expected object as it should be: `{class: {attribute: value}}`, or the attributes of one.

    Attributes that begin with `_`, and those of the actual object alone, do not count. Values are compared as Python does.

    >>> is_same_world({"A": {"x": True, "y": 2}}, {"A": {"x": 1, "_z": 3}}), is_same_world({"x": 2}, {"x": 1})
    (True, False)
    """
    if not isinstance(actual, dict) or not isinstance(expected, dict):
        return actual == expected
    objects = [(actual.get(name), one) for name, one in expected.items() if isinstance(one, dict)]
    for one, wanted in objects if objects and len(objects) == len(expected) else [(actual, expected)]:
        public = [name for name in wanted if not name.startswith("_")]
        if not isinstance(one, dict) or any(name not in one or one[name] != wanted[name] for name in public):
            return False
    return True


def _list_turns(case: Case) -> Iterable[ExpectedTurn]:
    for path, scope, turn in case.scopes:
        patterns = [one.options[0][1] for one in scope.list_expected_calls(path, turn) if one.required]
        if turn is not None and (patterns or scope.calls == "some"):
            yield turn, path, patterns


def _compare(expected: Template, content: JsonValue, *, theirs: bool) -> Match | OpenComparison:
    return Match(1.0, content == expected) if theirs else match_result(expected, content)
