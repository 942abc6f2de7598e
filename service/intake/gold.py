"""Gold in the shape of the benchmark it comes from, as an expectation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from service.core.carried.bfcl import Answer, Doc, convert
from service.core.expect import Expectation
from service.core.invalid import problems_of
from service.core.kinds import Frozen, Several
from service.core.trace import ToolDef
from service.errors import InputError
from service.intake.build import tool_call


class BfclGold(Frozen):
    """A BFCL answer key. `possible_answer` null: no function fits, and nothing should be called."""

    format: Literal["bfcl"]
    category: str | None = None
    possible_answer: Several[dict[str, Any]] | None


class TauAction(Frozen):
    """A call of tau-bench's gold solution."""

    name: str = Field(min_length=1)
    kwargs: dict[str, Any]


class TauGold(Frozen):
    """A tau-bench task's gold. Calls beyond the gold ones are fine there: only the state at the end counts."""

    format: Literal["tau"]
    actions: Several[TauAction] | None = None
    outputs: Several[str] = ()
    state: Any = None


class FutureAgiGold(Frozen):
    """An expected call, or a list of them, as Future AGI's SDK and its document write them: one of the two fields.

    A call is `{name | function_name | function, arguments | parameters | input}` or OpenAI's `{type, function: {...}}`, its
    arguments an object or a JSON text. `[]`: no call.
    """

    format: Literal["future_agi"]
    expected_response: Any = None
    expected: Any = None


Known = BfclGold | TauGold | FutureAgiGold
Gold = Annotated[Known, Field(discriminator="format")]
GOLD: TypeAdapter[Known] = TypeAdapter(Gold)


def expectation_of(gold: Known | Mapping[str, JsonValue], tools: Iterable[ToolDef]) -> Expectation:
    """The expectation that a benchmark's gold amounts to; `tools` are those of the trace, named as the model saw them.

    Raises InputError below `/expected` for gold out of shape.
    """
    try:
        known = GOLD.validate_python(dict(gold)) if isinstance(gold, Mapping) else gold
    except ValidationError as error:
        raise InputError(problems_of(error, cast("JsonValue", gold), below="/expected")) from None
    if isinstance(known, BfclGold):
        return _of_bfcl(known, tools)
    return _of_tau(known) if isinstance(known, TauGold) else _of_future_agi(known)


def _of_bfcl(gold: BfclGold, tools: Iterable[ToolDef]) -> Expectation:
    plain = {"format": "bfcl", "category": gold.category, "possible_answer": gold.possible_answer}
    if gold.possible_answer is None:
        return Expectation.model_validate({"calls": "none", "gold": plain})
    answers = cast("list[Answer]", list(gold.possible_answer))
    docs = [cast("Doc", {"name": tool.name, "parameters": tool.parameters}) for tool in tools]
    patterns = convert(answers, docs)
    return Expectation.model_validate({"calls": patterns, "gold": plain})


def _of_tau(gold: TauGold) -> Expectation:
    calls = [{"tool": action.name, "args": _literal(action.kwargs)} for action in gold.actions or ()]
    said: dict[str, object] = {
        "calls"
        if calls
        else "unordered": calls,  # without gold actions any call may be made, so long as nothing changes
        "allow_extra": True,
        "gold": gold.model_dump(mode="json"),
    }
    if gold.state is not None:
        said["state"] = {"final": gold.state}
    if gold.outputs:
        said["said"] = [_told(output) for output in gold.outputs]
    return Expectation.model_validate(said)


def _told(output: str) -> dict[str, object]:
    """A matcher for an output: part of a text, without case, and of a number with or without its thousands separators."""
    plain = output.replace(",", "")
    forms = [output]
    if _NUMBER.fullmatch(plain):
        whole, dot, fraction = plain.partition(".")
        forms += [plain, f"{int(whole):,}{dot}{fraction}"]
    parts: list[dict[str, object]] = [
        {"kind": "contains", "value": form, "ignore_case": True} for form in dict.fromkeys(forms)
    ]
    return parts[0] if len(parts) == 1 else {"kind": "any_of", "of": parts}


_NUMBER = re.compile(r"[0-9]{4,18}(\.[0-9]{1,9})?")


def _of_future_agi(gold: FutureAgiGold) -> Expectation:
    field = "expected_response" if gold.expected is None else "expected"
    given: JsonValue = getattr(gold, field)
    if isinstance(given, list):
        calls = [_call(call, f"/expected/{field}/{n}") for n, call in enumerate(given)]
    else:
        calls = [_call(given, f"/expected/{field}")]
    return Expectation.model_validate({"calls": calls})


def _call(given: JsonValue, path: str) -> dict[str, JsonValue]:
    """A call pattern for a call in any of the shapes."""
    if isinstance(given, dict) and isinstance(given.get("function"), dict):
        return _call(given["function"], f"{path}/function")
    if not isinstance(given, dict):
        raise InputError.at(path, "an expected call is an object with a name and arguments")
    name = next((given[key] for key in ("name", "function_name", "function") if key in given), None)
    if not isinstance(name, str) or not name:
        raise InputError.at(path, "an expected call has a name, function_name or function")
    key = next((key for key in ("arguments", "parameters", "input") if key in given), "")
    made = tool_call(None, name, given.get(key))
    if made.arguments is None:
        raise InputError.at(f"{path}/{key}", f"the arguments are no JSON object: {made.problem}")
    return {"tool": name, "args": _literal(made.arguments)}


def _literal(arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Arguments of gold, none of which is a matcher, whatever it looks like."""
    return {name: {"kind": "exact", "value": value} for name, value in arguments.items()}
