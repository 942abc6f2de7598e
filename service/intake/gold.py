"""Gold in the shape of the benchmark it comes from, as an expectation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import Field, JsonValue, TypeAdapter, ValidationError

from service.core.carried.bfcl import Answer, Doc, convert
from service.core.expect import Expectation
from service.core.invalid import problems_of
from service.core.kinds import Frozen, Several
from service.core.trace import ToolDef
from service.errors import InputError


class BfclGold(Frozen):
    """A BFCL answer key. `possible_answer` null: no function fits, and nothing should be called."""

    format: Literal["bfcl"]
    category: str | None = None
    possible_answer: Several[dict[str, Any]] | None


class TauAction(Frozen):
    """A call of tau-bench's gold solution."""

    name: str
    kwargs: dict[str, Any]


class TauGold(Frozen):
    """A tau-bench task's gold. Calls beyond the gold ones are fine there: only the state at the end counts."""

    format: Literal["tau"]
    actions: Several[TauAction] | None = None
    outputs: Several[str] = ()
    state: Any = None


Gold = Annotated[BfclGold | TauGold, Field(discriminator="format")]
GOLD: TypeAdapter[BfclGold | TauGold] = TypeAdapter(Gold)


def expectation_of(gold: BfclGold | TauGold | Mapping[str, JsonValue], tools: Iterable[ToolDef]) -> Expectation:
    """The expectation that a benchmark's gold amounts to; `tools` are those of the trace, named as the model saw them.

    Raises InputError below `/expected` for gold out of shape.
    """
    try:
        known = GOLD.validate_python(dict(gold)) if isinstance(gold, Mapping) else gold
    except ValidationError as error:
        raise InputError(problems_of(error, cast("JsonValue", gold), below="/expected")) from None
    return _of_bfcl(known, tools) if isinstance(known, BfclGold) else _of_tau(known)


def _of_bfcl(gold: BfclGold, tools: Iterable[ToolDef]) -> Expectation:
    plain = {"format": "bfcl", "category": gold.category, "possible_answer": gold.possible_answer}
    if gold.possible_answer is None:
        return Expectation.model_validate({"calls": "none", "gold": plain})
    answers = cast("list[Answer]", list(gold.possible_answer))
    docs = [cast("Doc", {"name": tool.name, "parameters": tool.parameters}) for tool in tools]
    patterns = convert(answers, docs)
    return Expectation.model_validate({"calls": patterns, "gold": plain})


def _of_tau(gold: TauGold) -> Expectation:
    calls = [{"tool": action.name, "args": action.kwargs} for action in gold.actions or ()]
    plain = gold.model_dump(mode="json")
    return Expectation.model_validate({"calls": calls or "none", "allow_extra": True, "gold": plain})
