"""Expected calls as people keep them: tau-bench's tasks, BFCL's answer keys, cases of DeepEval and ragas, Future AGI's format."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, Self

from pydantic import Field, JsonValue, model_validator

from service.core.expectations.expectation import Expectation
from service.core.gates.published import get_mapping, list_properties
from service.core.json.members import find_text, list_elements
from service.core.json.parsing import read_structure
from service.core.models.kinds import FrozenModel, Several
from service.core.trace import ToolDef
from service.errors import InputError
from service.intake.gold import GoldForm, match_exactly, match_words
from service.intake.texts import build_tool_call, parse_calls


class TauGoldAction(FrozenModel):
    """A call of the gold solution, in `kwargs` (tau-bench) or `arguments` (tau2-bench): exactly one of the two."""

    name: str = Field(min_length=1)
    kwargs: dict[str, Any] | None = None
    arguments: dict[str, Any] | None = None
    compare_args: Several[str] | None = None
    """Arguments that tau2-bench compares; absent: those of the call."""
    action_id: str | None = None
    info: str | None = None
    requestor: Literal["assistant"] = "assistant"
    """Who should act. Actions of the simulated user are not supported."""

    @model_validator(mode="after")
    def _has_arguments_once(self) -> Self:
        if (self.kwargs is None) == (self.arguments is None):
            raise ValueError("an action needs its arguments in kwargs or in arguments")
        return self


class TauGold(GoldForm):
    """The gold of a tau-bench task. Extra calls are fine: only the final state counts."""

    format: Literal["tau"]
    actions: Several[TauGoldAction] | None = None
    outputs: Several[str] = ()
    state: Any = None

    def expect(self, tools: Iterable[ToolDef]) -> Expectation:  # noqa: ARG002
        """Expect the calls, others beside them, the final state, and the outputs in what was said."""
        given = [(one.name, one.kwargs or one.arguments or {}) for one in self.actions or ()]
        calls = [{"tool": name, "args": match_exactly(arguments)} for name, arguments in given]
        # Without gold actions any call is allowed as long as nothing changes.
        expected: dict[str, object] = {"calls" if calls else "unordered": calls, "allow_extra": True}
        expected["gold"] = self.model_dump(mode="json")
        if self.state is not None:
            expected["state"] = {"final": self.state}
        if self.outputs:
            expected["said"] = [match_words(output) for output in self.outputs]
        return Expectation.model_validate(expected)


class BfclGold(GoldForm):
    """A BFCL answer key. `possible_answer` null: no function fits, and none should be called.

    For an agentic question, `possible_answer` lists texts, one of which must be in the answer.
    """

    format: Literal["bfcl"]
    category: str | None = None
    possible_answer: Several[dict[str, Any]] | Several[str] | None

    def expect(self, tools: Iterable[ToolDef]) -> Expectation:
        """Build call patterns from the key, or expect no call.

        Functions are named as the tools are, with "_" for "." if need be.
        """
        raw, functions = self.possible_answer, {tool.name: tool.parameters for tool in tools}
        answers = [one if isinstance(one, str) else _name_as_shown(one, functions.keys()) for one in raw or ()]
        plain = {"format": "bfcl", "category": self.category, "possible_answer": None if raw is None else answers}
        if raw is None:
            return Expectation.model_validate({"calls": "none", "gold": plain})
        texts = [one for one in answers if isinstance(one, str)]
        if texts:
            matchers = [match_words(text) for text in texts if text.strip()]
            if not matchers:
                raise InputError.at("/expected/possible_answer", "every answer contains a blank text")
            return Expectation.model_validate({"answer": {"kind": "any_of", "of": matchers}, "gold": plain})
        patterns = convert([one for one in answers if not isinstance(one, str)], functions)
        return Expectation.model_validate({"calls": patterns, "gold": plain})


def _name_as_shown(answer: Mapping[str, Any], shown: Collection[str]) -> dict[str, Any]:
    plain = {name: name.replace(".", "_") for name in answer}
    return {
        plain[name] if name not in shown and plain[name] in shown else name: accepted
        for name, accepted in answer.items()
    }


def convert(answers: Iterable[Mapping[str, Any]], functions: Mapping[str, object]) -> list[dict[str, Any]]:
    """Convert BFCL's gold to expected calls: `[{"tool": name, "args": {parameter: matcher}}]`.

    One accepted value becomes an exact matcher, several become `any_of`; the optional marker becomes `"optional": true`.
    Accepted objects of the form `{key: [accepted values]}`, and arrays of them, become patterns of matchers, key by key. The
    values stay as they are: callgrade compares them by typed equality where BFCL strips punctuation.
    An entry of a broken answer key that maps its function to no parameters becomes a pattern without `args`.
    """
    patterns: list[dict[str, Any]] = []
    for name, accepted in [next(iter(answer.items()), ("", None)) for answer in answers]:
        tool = next(iter(functions)) if name not in functions and len(functions) == 1 else name
        properties = list_properties(functions.get(tool))
        arrays = {key for key, spec in properties.items() if get_mapping(spec).get("type") in ("array", "tuple")}
        args = {
            key: _build_matcher(list_elements(options), empty=[] if key in arrays else "")
            for key, options in get_mapping(accepted).items()
        }
        patterns.append({"tool": tool, "args": args} if isinstance(accepted, Mapping) else {"tool": name})
    return patterns


def _build_matcher(accepted: list[JsonValue], *, empty: JsonValue = "") -> JsonValue:
    """Build a matcher for the accepted values. The optional marker alone accepts the `empty` value."""
    values = [value for value in accepted if value != ""]
    optional = len(values) < len(accepted)
    if not values:
        return {"kind": "exact", "value": empty, "optional": True}
    if len(values) == 1 and _is_nested(values[0]) and not optional:
        return _build_nested(values[0])
    matchers: list[dict[str, JsonValue]] = [
        {"kind": "shape", "value": _build_nested(value)} if _is_nested(value) else {"kind": "exact", "value": value}
        for value in values
    ]
    matcher: dict[str, JsonValue] = matchers[0] if len(matchers) == 1 else {"kind": "any_of", "of": [*matchers]}
    return matcher | {"optional": True} if optional else matcher


def _is_nested(value: JsonValue) -> bool:
    """Whether this is `{key: [accepted values]}`, or an array of such objects."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(item, dict) and _is_nested(item) for item in list_elements(value))
    return isinstance(value, dict) and all(isinstance(options, list) for options in get_mapping(value).values())


def _build_nested(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_build_nested(item) for item in list_elements(value)]
    return {key: _build_matcher(list_elements(options)) for key, options in get_mapping(value).items()}


class GoldCall(FrozenModel):
    """A call that should be made. Absent arguments: any will do."""

    name: str = Field(min_length=1)
    arguments: dict[str, Any] | None = None


class CallsGold(GoldForm):
    """Calls that should be made, in any order unless `ordered`."""

    format: Literal["calls"]
    calls: Several[GoldCall] = ()
    ordered: bool = False

    def expect(self, tools: Iterable[ToolDef]) -> Expectation:  # noqa: ARG002
        """Expect exactly these calls."""
        given = [(one.name, one.arguments) for one in self.calls]
        calls = [{"tool": name} | ({} if args is None else {"args": match_exactly(args)}) for name, args in given]
        return Expectation.model_validate({"ordered" if self.ordered and calls else "calls": calls or "none"})


class FutureAgiGold(GoldForm):
    """One expected call or a list of them, in the field that Future AGI's SDK or its documentation uses.

    A call is `{name | function_name | function, arguments | parameters | input}` or OpenAI's `{type, function:
    {...}}`; its arguments are an object or JSON text. A text is JSON of these, or calls written as Python: `f(a=1)`.
    `[]`: no call.
    """

    format: Literal["future_agi"]
    expected_response: Any = None
    expected: Any = None

    def expect(self, tools: Iterable[ToolDef]) -> Expectation:  # noqa: ARG002
        """Expect exactly these calls. Raises InputError for anything that is not a call."""
        if {"expected", "expected_response"} <= self.model_fields_set:
            raise InputError.at("/expected/expected", "means the same as expected_response: give only one")
        field = "expected_response" if self.expected is None else "expected"
        raw: JsonValue = getattr(self, field)
        if isinstance(raw, str):
            raw = _read_text(raw, f"/expected/{field}")
        if isinstance(raw, list):
            calls = [_read_call(call, f"/expected/{field}/{n}") for n, call in enumerate(raw)]
        else:
            calls = [_read_call(raw, f"/expected/{field}")]
        return Expectation.model_validate({"calls": calls})


def _read_text(text: str, path: str) -> JsonValue:
    structure = read_structure(text)
    if not isinstance(structure, str):
        return structure
    calls = parse_calls(text)
    if calls is None or any(call.arguments is None for call in calls):
        raise InputError.at(path, "the text is neither JSON nor a Python call with named literals: f(a=1)")
    return [{"name": call.name, "arguments": call.arguments} for call in calls]


def _read_call(raw: JsonValue, path: str) -> dict[str, JsonValue]:
    if isinstance(raw, dict) and isinstance(raw.get("function"), dict):
        return _read_call(raw["function"], f"{path}/function")
    if not isinstance(raw, dict):
        raise InputError.at(path, "an expected call is an object with a name and arguments")
    name = find_text(raw, "name", "function_name", "function")
    if not name:
        raise InputError.at(path, "an expected call needs a name, function_name or function")
    key = next((key for key in ("arguments", "parameters", "input") if key in raw), "")
    call = build_tool_call(None, name, raw.get(key))
    if call.arguments is None:
        raise InputError.at(f"{path}/{key}", f"the arguments are no JSON object: {call.problem}")
    return {"tool": name, "args": match_exactly(call.arguments)}
