"""Answer keys of the Berkeley Function-Calling Leaderboard."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

from pydantic import JsonValue

from service.core.expectations.expectation import Expectation
from service.core.gates.published import get_list, get_mapping, list_properties
from service.core.models.kinds import Several
from service.core.trace import ToolDef
from service.errors import InputError
from service.intake.gold import GoldForm, match_words


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
            key: _build_matcher(get_list(options), empty=[] if key in arrays else "")
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
        return bool(value) and all(isinstance(item, dict) and _is_nested(item) for item in get_list(value))
    return isinstance(value, dict) and all(isinstance(options, list) for options in get_mapping(value).values())


def _build_nested(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_build_nested(item) for item in get_list(value)]
    return {key: _build_matcher(get_list(options)) for key, options in get_mapping(value).items()}
