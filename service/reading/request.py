"""The request to score a trace, and how it becomes a plan. Pure."""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from typing import Annotated, Literal, cast

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
from service.intake.gold import Gold, build_expectation
from service.intake.reading import TraceInput, explain_wrapping, find_wrapping, guess_format, read_gold, read_trace
from service.intake.tools import read_tools
from service.reading.strict_json import Limits, check_value


def _name_rubric_form(value: object) -> str:
    if isinstance(value, str):
        return "id"
    return "extension" if isinstance(value, Extension) or (isinstance(value, dict) and "extends" in value) else "inline"


def _name_expected_form(value: object) -> str:
    return "gold" if isinstance(value, dict) and "format" in value else "expectation"


RubricChoice = Annotated[
    Annotated[str, Tag("id")] | Annotated[Extension, Tag("extension")] | Annotated[Rubric, Tag("inline")],
    Discriminator(_name_rubric_form),
]
Expected = Annotated[
    Annotated[Expectation, Tag("expectation")] | Annotated[Gold, Tag("gold")], Discriminator(_name_expected_form)
]


CustomId = Annotated[str, Field(min_length=1, max_length=256)]
"""The name of an item in a batch."""


class Sandbox(FrozenModel):
    """A service that runs the calls if the trace has no final state."""

    url: str = Field(min_length=1, max_length=2048)
    """Where the calls are posted: http or https, at a host that the settings allow."""
    run_invalid: bool = False
    """Whether to run calls that fail the schema gate too."""


class ScoreRequest(FrozenModel):
    """One trace to score."""

    rubric: RubricChoice = "four_step"
    """A rubric's id, `id@version`, a rubric, or another rubric with changes (`extends`)."""
    trace: TraceInput
    """What happened, in its provider's own format: the one that `format` names or, without it, a guess."""
    tools: JsonValue = None
    """The tools on offer, where the trace does not say: a list of tools, what MCP's `tools/list` returns, or an OpenAPI 3
    document, whose operations are the tools.
    """
    expected: Expected | None = None
    """What should have happened. Absent: only what needs no expectation is scored."""
    judges: JudgeMode | None = None
    """How judges are asked: off, cached (no model call), live or fresh. Absent: live if a judge model is set, else off."""
    judge_model: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    """The model for judges that name none, as litellm names it: one that the settings allow. Absent: the model that is
    set.
    """
    budget_usd: Annotated[float, Field(ge=0)] | None = None
    """The most that judges may cost, in US dollars. A question that might exceed it is not asked: its outcome is
    errored, with the cause `budget_exhausted`. Models without a known price are not counted.
    """
    on_judge_error: Literal["partial", "error"] = "partial"
    """What to do if a judge gives no verdict: `partial` reports what stands without it, `error` fails the request
    (503).
    """
    sandbox: Sandbox | None = None
    """The service that runs the calls if the trace does not contain the state they led to."""
    store: bool | None = None
    """Whether the service keeps the trace with its report, to be viewed and labelled. Absent: as the settings say.
    Items of batches are always kept with their batch.
    """
    tags: Annotated[dict[str, str], Field(max_length=64)] = Field(default_factory=dict)
    """Labels that are returned in the report."""


REQUEST: TypeAdapter[ScoreRequest] = TypeAdapter(ScoreRequest)
RUBRIC: TypeAdapter[str | Extension | Rubric] = TypeAdapter(RubricChoice, config=DEFERRED)

MAX_SHARED_RUBRIC_CHARS = 65_536
"""Longest rubric, in characters, that is compiled once and shared between requests."""


def read_request(body: JsonValue) -> ScoreRequest:
    """Validate a parsed body as a request; InputError names every problem by its pointer.

    Requests with the same rubric share one rubric object, so what depends on it is compiled once.
    """
    try:
        return REQUEST.validator.validate_python(_replace_rubric(body))
    except ValidationError as error:
        refuse_other_shape(body)
        problems, trace = list_problems(error, body), body.get("trace") if isinstance(body, dict) else None
        guessed = guess_format(trace) if isinstance(trace, dict) and "format" not in trace else None
        if guessed is not None:
            problems.append(Problem("/trace", f"it names no format, and was read as {guessed}"))
        raise InputError(problems) from None


UNBOUNDED = Limits(max_bytes=sys.maxsize, max_string=sys.maxsize, max_items=sys.maxsize)
"""What a program may hand over as it is: JSON, of any size, but not of any depth."""


def check_request(body: object) -> ScoreRequest:
    """Validate a body that no parser has checked, as `read_request` does; InputError also for what is no JSON."""
    check_value(body, UNBOUNDED)
    return read_request(cast("JsonValue", body))


def refuse_other_shape(body: JsonValue) -> None:
    """Raise InputError for a body that is not a request at all: a bare trace, or a request nested below a name.

    The error says so, rather than listing the members that are missing.
    """
    if not isinstance(body, dict) or "trace" in body:
        return
    if "format" in body or guess_format(body) is not None:
        raise InputError.at("", 'this is a trace; in a request it is the member `trace`: {"trace": {...}}')
    wrapping = "request" if isinstance(body.get("request"), dict) else find_wrapping(body)
    if wrapping is not None:
        raise InputError.at(f"/{escape_token(wrapping)}", explain_wrapping(wrapping))


def _replace_rubric(body: JsonValue) -> object:
    if not isinstance(body, dict) or not isinstance(body.get("rubric"), dict):
        return body
    try:
        text = json.dumps(body["rubric"])
        return body if len(text) > MAX_SHARED_RUBRIC_CHARS else {**body, "rubric": _parse_shared_rubric(text)}
    except (TypeError, ValueError, RecursionError):  # not JSON or not a rubric: validation reports it with the rest
        return body


@lru_cache(maxsize=64)
def _parse_shared_rubric(text: str) -> str | Extension | Rubric:
    return RUBRIC.validate_python(json.loads(text))


def read_request_trace(request: ScoreRequest) -> Trace:
    """Read the trace of a request, with the request's tools if it names none; InputError if it contradicts itself."""
    offered = read_tools(request.tools)
    try:
        return read_trace(request.trace, offered=offered)
    except InputError as error:
        raise error.below("/trace") from None


def plan_request(request: ScoreRequest, rubric: Rubric, trace: Trace | None = None) -> Plan:
    """Plan a request under its rubric; InputError if the trace or the gold contradicts itself.

    `trace`: the request's own trace, after its calls were run.
    """
    trace = trace or read_request_trace(request)
    try:
        return plan(trace, rubric, find_expectation(request, trace))
    except OverBudgetError as error:
        raise InputError.at("/trace", str(error)) from None


def find_expectation(request: ScoreRequest, trace: Trace) -> Expectation | None:
    """Find the expectation: the request's own, else the gold in the trace's format. InputError for unusable gold."""
    expected = request.expected
    if isinstance(expected, Expectation):
        return expected
    try:
        gold = expected if expected is not None else read_gold(request.trace)
    except InputError as error:
        raise error.below("/trace") from None
    if gold is None:
        return None
    try:
        return build_expectation(gold, trace.tools or ())
    except ValidationError as error:  # right shape but still no expectation, e.g. a call without a name
        raise InputError(list_problems(error, None, below="/expected")) from None
