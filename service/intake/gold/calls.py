"""Expected calls by name and arguments: as test cases of DeepEval and ragas give them, and in Future AGI's format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import Field, JsonValue

from service.core.expectations.expectation import Expectation
from service.core.json.parsing import read_structure
from service.core.models.kinds import FrozenModel, Several
from service.core.trace import ToolDef
from service.errors import InputError
from service.intake.gold import GoldForm, match_exactly
from service.intake.texts import build_tool_call, parse_calls


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
    name = next((raw[key] for key in ("name", "function_name", "function") if key in raw), None)
    if not isinstance(name, str) or not name:
        raise InputError.at(path, "an expected call needs a name, function_name or function")
    key = next((key for key in ("arguments", "parameters", "input") if key in raw), "")
    call = build_tool_call(None, name, raw.get(key))
    if call.arguments is None:
        raise InputError.at(f"{path}/{key}", f"the arguments are no JSON object: {call.problem}")
    return {"tool": name, "args": match_exactly(call.arguments)}
