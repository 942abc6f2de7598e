"""What is asked of the service, and how a request becomes a plan. Pure."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import Discriminator, Field, JsonValue, Tag, TypeAdapter, ValidationError

from service.core.expectations.expectation import Expectation
from service.core.json.pointers import escape_token
from service.core.models.kinds import DEFERRED, FrozenModel
from service.core.models.validation import list_problems
from service.core.plan import Plan, plan
from service.core.report import JudgeMode
from service.core.rubric import Rubric
from service.core.rubric_extension import Extension
from service.core.trace import Trace
from service.core.work_limits import OverBudgetError
from service.errors import InputError, Problem
from service.intake import TraceInput, guess_format, read_gold, read_trace
from service.intake.gold import Gold, build_expectation
from service.intake.reading import explain_wrapping, find_wrapping


def _rubric_form(value: object) -> str:
    if isinstance(value, str):
        return "id"
    return "extension" if isinstance(value, Extension) or (isinstance(value, dict) and "extends" in value) else "inline"


def _name_expected_form(value: object) -> str:
    return "gold" if isinstance(value, dict) and "format" in value else "expectation"


RubricChoice = Annotated[
    Annotated[str, Tag("id")] | Annotated[Extension, Tag("extension")] | Annotated[Rubric, Tag("inline")],
    Discriminator(_rubric_form),
]
Expected = Annotated[
    Annotated[Expectation, Tag("expectation")] | Annotated[Gold, Tag("gold")], Discriminator(_name_expected_form)
]


CustomId = Annotated[str, Field(min_length=1, max_length=256)]
"""The name of an item of a batch."""


class Sandbox(FrozenModel):
    """A service that makes the calls where the trace has no final state."""

    url: str = Field(min_length=1, max_length=2048)
    """Where the calls are posted: http or https, to a host that the settings allow."""
    run_invalid: bool = False
    """Whether calls that fail the schema gate are run too."""


class ScoreRequest(FrozenModel):
    """One trace to score."""

    rubric: RubricChoice = "four_step"
    """A rubric's id, `id@version`, a rubric, or another rubric with changes (`extends`)."""
    trace: TraceInput
    """What happened, in its provider's own format, named by `format` or, where that is left out, guessed."""
    expected: Expected | None = None
    """What should have happened. Absent: only what needs no expectation is scored."""
    judges: JudgeMode | None = None
    """Whether judges are asked: off, cached (no model call), live, fresh. Absent: live where a judge model is set, else
    off."""
    judge_model: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """The model that judges where a judge names none, as litellm names it: one that the settings allow. Absent: the one that
    is set up."""
    budget_usd: Annotated[float, Field(ge=0)] | None = None
    """The most that judges may cost. A question that might go over it is not put: its outcome is errored, with the cause
    `budget_exhausted`. Models whose price is not known are not counted."""
    on_judge_error: Literal["partial", "error"] = "partial"
    """What a judge that gives no verdict does: `partial` reports what stands without it, `error` fails the request (503)."""
    sandbox: Sandbox | None = None
    """Who makes the calls, where the trace does not tell the state they led to."""
    store: bool | None = None
    """Whether the service keeps the trace with its report, to be looked at and labelled. Absent: as it is set up. Items of
    batches are kept with their batch, whatever this says."""
    tags: Annotated[dict[str, str], Field(max_length=64)] = Field(default_factory=dict)
    """Labels that come back in the report."""


REQUEST: TypeAdapter[ScoreRequest] = TypeAdapter(ScoreRequest)
RUBRIC: TypeAdapter[str | Extension | Rubric] = TypeAdapter(RubricChoice, config=DEFERRED)

LONGEST = 65_536
"""Characters of a rubric that is worth remembering."""


def read_request(body: JsonValue) -> ScoreRequest:
    """The request in a parsed body; InputError names every problem by its pointer.

    Requests with the same rubric in them share it: what is worked out of a rubric is worked out once.
    """
    try:
        return REQUEST.validator.validate_python(_replace_rubric(body))
    except ValidationError as error:
        refuse_other_shape(body)
        raise InputError([*list_problems(error, body), *_explain_guess(body)]) from None


def refuse_other_shape(body: JsonValue) -> None:
    """InputError, and nothing about its members, for what is no request: the trace alone, or a request below a name."""
    if not isinstance(body, dict) or "trace" in body:
        return
    if "format" in body or guess_format(body) is not None:
        raise InputError.at("", 'this is a trace; in a request it is the member `trace`: {"trace": {...}}')
    wrapping = "request" if isinstance(body.get("request"), dict) else find_wrapping(body)
    if wrapping is not None:
        raise InputError.at(f"/{escape_token(wrapping)}", explain_wrapping(wrapping))


def _explain_guess(body: JsonValue) -> list[Problem]:
    """What to know of problems in a trace that names no format: as what it was read."""
    trace = body.get("trace") if isinstance(body, dict) else None
    if not isinstance(trace, dict) or "format" in trace:
        return []
    guessed = guess_format(trace)
    return [] if guessed is None else [Problem("/trace", f"it names no format, and was read as {guessed}")]


def _replace_rubric(body: JsonValue) -> object:
    if not isinstance(body, dict) or not isinstance(body.get("rubric"), dict):
        return body
    try:
        text = json.dumps(body["rubric"])
        return body if len(text) > LONGEST else {**body, "rubric": _parse_shared_rubric(text)}
    except (TypeError, ValueError, RecursionError):  # no JSON, or no rubric: told with its pointers beside all else
        return body


@lru_cache(maxsize=64)
def _parse_shared_rubric(text: str) -> str | Extension | Rubric:
    return RUBRIC.validate_python(json.loads(text))


def read_request_trace(request: ScoreRequest) -> Trace:
    """The trace of a request; InputError where it contradicts itself."""
    try:
        return read_trace(request.trace)
    except InputError as error:
        raise error.below("/trace") from None


def plan_request(request: ScoreRequest, rubric: Rubric, trace: Trace | None = None) -> Plan:
    """The plan of a request under its rubric; InputError where the trace or gold contradict themselves.

    `trace`: the request's own, as it stands after its calls were made.
    """
    trace = trace or read_request_trace(request)
    try:
        return plan(trace, rubric, find_expectation(request, trace))
    except OverBudgetError as error:
        raise InputError.at("/trace", str(error)) from None


def find_expectation(request: ScoreRequest, trace: Trace) -> Expectation | None:
    """What is expected: as the request says, else the gold of the trace's own format. InputError for gold that is none."""
    said = request.expected
    if isinstance(said, Expectation):
        return said
    gold = said if said is not None else read_gold(request.trace)
    if gold is None:
        return None
    try:
        return build_expectation(gold, trace.tools or ())
    except ValidationError as error:  # of the right shape, and yet no expectation: a call without a name
        raise InputError(list_problems(error, None, below="/expected")) from None
