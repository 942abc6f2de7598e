"""Give BFCL's verdict on calls as their code does, and convert their gold to expected calls.

Source: ShishirPatil/gorilla, `bfcl_eval/eval_checker/ast_eval/ast_checker.py` (v4). `check` gives its verdicts, leniencies and
greedy matching included. Where a malformed answer key makes that code raise, this one goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from service.core.json.pointers import build_pointer
from service.core.methods.bfcl_values import find_problem, get_list, get_mapping

Code = Literal[
    "",
    "wrong_count",
    "wrong_name",
    "missing_required",
    "unexpected_argument",
    "type_error",
    "value_error",
    "missing_optional",
    "no_match",
    "over_call",
]

Doc = Mapping[str, JsonValue]
"""A function doc: `{"name": ..., "parameters": {"type": "dict", "properties": {...}, "required": [...]}}`."""
Answer = Mapping[str, JsonValue]
"""One expected call: `{function: {parameter: [accepted values]}}`; "" among the accepted values marks it as optional."""
Arguments = Mapping[str, JsonValue]
Call = tuple[str, Arguments]


@dataclass(frozen=True, slots=True)
class Verdict:
    """BFCL's verdict. When invalid, it has a code, the reason, and a JSON pointer into the trace or below `/expected`."""

    valid: bool
    code: Code = ""
    message: str = ""
    path: str = ""


VALID = Verdict(True)


def check(
    answers: Sequence[Answer] | None,
    calls: Sequence[Call] | None,
    functions: Sequence[Doc],
    *,
    category: str | None = None,
    underscore_to_dot: bool = False,
) -> Verdict:
    """Give BFCL's verdict on the calls of one single-turn question.

    `answers`: the expected calls; None for a question that no function fits, where making no call is right (and, as upstream,
    so is output that cannot be read). `calls`: None if the output did not decode. `functions`: the docs as BFCL stores them.
    `category` picks the rule by its name, as upstream (parallel, else multiple, else simple; `live_relevance` expects any call,
    the other relevance categories expect none); without it, the numbers of answers and functions decide.
    `underscore_to_dot`: the model cannot write "." in names, so `a.b` is called as `a_b`.
    Raises InputError for a parameter type that BFCL does not know.
    """
    if category == "live_relevance":
        return VALID if calls else Verdict(False, "wrong_count", "a call was expected, none decodes", "/steps")
    if answers is None or (category or "").endswith("relevance"):
        return _check_no_call(calls)
    if calls is None:
        return Verdict(False, "wrong_count", f"{len(answers)} calls expected, the output does not decode", "/steps")
    rule = _choose_rule(category, answers, functions)
    count = 1 if rule == "simple" else len(answers)
    if len(calls) != count:
        code = "wrong_count" if count else "over_call"
        return Verdict(False, code, f"{count} calls expected, {len(calls)} made", "/steps")
    if not answers:
        return VALID
    if rule == "parallel":
        return _check_any_order(answers, calls, functions, dotless=underscore_to_dot)
    doc = functions[0] if rule == "simple" else _find_doc(functions, _get_name(answers[0]))
    return _check_call(doc, answers[0], calls[0], 0, dotless=underscore_to_dot)


def _check_no_call(calls: Sequence[Call] | None) -> Verdict:
    if not calls:
        return VALID
    return Verdict(False, "over_call", f"no function fits the question, {calls[0][0]} was called", "/steps/0/call")


def _choose_rule(category: str | None, answers: Sequence[Answer], functions: Sequence[Doc]) -> str:
    if category is not None:
        return next((rule for rule in ("parallel", "multiple") if rule in category), "simple")
    if len(answers) != 1:
        return "parallel"
    return "simple" if len(functions) == 1 else "multiple"


MAX_REASONS = 20
"""At most this many calls that do not fit an answer are named."""


def _check_any_order(
    answers: Sequence[Answer], calls: Sequence[Call], functions: Sequence[Doc], *, dotless: bool
) -> Verdict:
    """Give each answer the first free call that fits, for good: an earlier answer may take a later one's only call."""
    free = list(range(len(calls)))
    for n, answer in enumerate(answers):
        doc = _find_doc(functions, _get_name(answer))
        verdicts = {i: _check_call(doc, answer, calls[i], i, dotless=dotless) for i in free}
        fitting = next((i for i, verdict in verdicts.items() if verdict.valid), None)
        if fitting is None:
            reasons = "; ".join(f"call {i}: {verdict.message}" for i, verdict in list(verdicts.items())[:MAX_REASONS])
            message = f"no free call fits {_get_name(answer)} ({reasons})"
            return Verdict(False, "no_match", message, build_pointer("expected", "calls", n))
        free.remove(fitting)
    return VALID


def _get_name(answer: Answer) -> str:
    return next(iter(answer), "")


def _find_doc(functions: Sequence[Doc], name: str) -> Doc | None:
    return next((doc for doc in functions if doc["name"] == name), None)


def _check_call(doc: Doc | None, answer: Answer, call: Call, step: int, *, dotless: bool) -> Verdict:
    """Compare one call with one answer. The expected name is the doc's, not the answer key's."""
    accepted = answer.get(_get_name(answer))
    if doc is None or not isinstance(accepted, Mapping):
        return Verdict(
            False, "wrong_name", f"the answer names {_get_name(answer)!r}, which is not on offer", "/expected/calls"
        )
    name = str(doc["name"]).replace(".", "_") if dotless else str(doc["name"])
    if call[0] != name:
        return Verdict(False, "wrong_name", f"{name} expected, {call[0]} called", f"/steps/{step}/call/name")
    return _check_arguments(doc, accepted, call[1], step)


def _check_arguments(doc: Doc, accepted: Mapping[str, JsonValue], arguments: Arguments, step: int) -> Verdict:
    path = ("steps", step, "call", "arguments")
    parameters = get_mapping(doc.get("parameters"))
    required = [one for one in get_list(parameters.get("required")) if isinstance(one, str)]
    missing = next((name for name in required if name not in arguments), None)
    if missing is not None:
        return Verdict(False, "missing_required", f"{missing} is required", build_pointer(*path))
    properties = get_mapping(parameters.get("properties"))
    for name, value in arguments.items():
        if name not in properties or name not in accepted:
            return Verdict(False, "unexpected_argument", f"{name} is not expected", build_pointer(*path, name))
        problem = find_problem(value, get_list(accepted[name]), get_mapping(properties[name]))
        if problem:
            return Verdict(
                False, problem, f"{name} is {value!r}, accepted: {accepted[name]!r}", build_pointer(*path, name)
            )
    absent = next((name for name in accepted if name not in arguments and "" not in get_list(accepted[name])), None)
    if absent is not None:
        return Verdict(False, "missing_optional", f"{absent} must be given for this question", build_pointer(*path))
    return VALID


def convert(answers: Sequence[Answer], functions: Sequence[Doc]) -> list[dict[str, JsonValue]]:
    """Convert BFCL's gold to expected calls: `[{"tool": name, "args": {parameter: matcher}}]`.

    One accepted value becomes an exact matcher, several become `any_of`; the optional marker becomes `"optional": true`.
    Accepted objects of the form `{key: [accepted values]}`, and arrays of them, become patterns of matchers, key by key. The
    values stay as they are: callgrade compares them by typed equality where BFCL strips punctuation.
    An entry of a broken answer key that maps its function to no parameters becomes a pattern without `args`.
    """
    return [_build_pattern(answer, functions) for answer in answers]


def _build_pattern(answer: Answer, functions: Sequence[Doc]) -> dict[str, JsonValue]:
    name = _get_name(answer)
    doc = _find_doc(functions, name) or (functions[0] if len(functions) == 1 else {})
    accepted = answer.get(name)
    if not isinstance(accepted, Mapping):
        return {"tool": name}
    properties = get_mapping(get_mapping(doc.get("parameters")).get("properties"))
    args: dict[str, JsonValue] = {
        key: _build_matcher(
            get_list(options), is_array=get_mapping(properties.get(key)).get("type") in ("array", "tuple")
        )
        for key, options in accepted.items()
    }
    return {"tool": str(doc.get("name", name)), "args": args}


def _build_matcher(accepted: Sequence[JsonValue], *, is_array: bool = False) -> JsonValue:
    """Build a matcher for the accepted values. The optional marker alone accepts the empty text or array."""
    values = [value for value in accepted if value != ""]
    optional = len(values) < len(accepted)
    if not values:
        return {"kind": "exact", "value": [] if is_array else "", "optional": True}
    if len(values) == 1 and _is_nested(values[0]) and not optional:
        return _build_nested(values[0])
    matchers: list[JsonValue] = [_build_alternative(value) for value in values]
    matcher = get_mapping(matchers[0]) if len(matchers) == 1 else {"kind": "any_of", "of": matchers}
    return {**matcher, "optional": True} if optional else dict(matcher)


def _build_alternative(value: JsonValue) -> JsonValue:
    if _is_nested(value):
        return {"kind": "shape", "value": _build_nested(value)}
    return {"kind": "exact", "value": value}


def _is_nested(value: JsonValue) -> bool:
    """Whether this is `{key: [accepted values]}`, or an array of such objects."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, Mapping) and _is_nested(item) for item in value)
    return isinstance(value, Mapping) and all(isinstance(options, list) for options in value.values())


def _build_nested(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_build_nested(item) for item in value]
    return {key: _build_matcher(get_list(options)) for key, options in get_mapping(value).items()}
