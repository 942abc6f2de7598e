"""Servers of the user's own: a model and an address are all that is set, whatever the dialect of the server."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from service import plan
from service.asking.budget.reservations import Spending
from service.core.judging.notes import JudgeReply
from service.settings import Settings
from service.wiring import build_judging
from tests.conftest import Run
from tests.faults.provider import TOKEN, Asked, Provider

REQUEST: Any = {
    "rubric": {
        "id": "r",
        "criteria": [{"id": "it", "stage": "decide", "check": {"kind": "judge", "judge": "call_decision"}}],
    },
    "trace": {"format": "callgrade", "events": [{"user": "Hello!"}, {"assistant": "Hello, how can I help you?"}]},
}


class Dialect(NamedTuple):
    """A server: what its model does, which parameters it refuses and how, and how many requests two questions take."""

    name: str
    model: str = "qwen3:14b"
    refuses: frozenset[str] = frozenset()
    refusal: str = ""
    status: str = "400 Bad Request"
    requests: int = 2


DIALECTS = [
    Dialect("ollama"),
    Dialect("ollama, a model that thinks in its reply", "fault-thinks"),
    Dialect("ollama, busy at first", "fault-503-x1", requests=3),
    Dialect("llama.cpp, thoughts opened by the template", "fault-thinks-unopened"),
    Dialect(
        "llama.cpp, no grammar for the schema",
        refuses=frozenset({"response_format"}),
        refusal="failed to parse grammar",
        requests=3,
    ),
    Dialect(
        "llama.cpp, an older one",
        refuses=frozenset({"response_format"}),
        refusal="failed to parse grammar",
        status="500 Internal Server Error",
        requests=3,
    ),
    Dialect("vllm, with a reasoning parser", "fault-thinks-beside"),
    Dialect("vllm, which takes the verdict for thoughts", "fault-thinks-only"),
    Dialect(
        "vllm, a short context",
        refuses=frozenset({"max_tokens"}),
        refusal="'max_tokens' or 'max_completion_tokens' is too large: 8792. This model's maximum context length is 4096 tokens",
        requests=3,
    ),
    Dialect(
        "lm studio, without schemas",
        refuses=frozenset({"response_format"}),
        refusal="'response_format.type' must be 'text'",
        requests=3,
    ),
    Dialect("sglang, too many at once", "fault-429-bare-x1", requests=3),
]


def greet(asked: Asked) -> dict[str, Any]:
    found = TOKEN.search(asked.text)
    assert found is not None
    return {"token": found[1], "label": "right", "quotes": ["how can I help you"], "reason": "it greets"}


@pytest.mark.parametrize("dialect", DIALECTS, ids=[dialect.name for dialect in DIALECTS])
def test_a_model_and_an_address_suffice(run: Run, provider: Provider, tmp_path: Path, dialect: Dialect) -> None:
    provider.refuses, provider.refusal, provider.refusal_status = dialect.refuses, dialect.refusal, dialect.status
    provider.reply_of = greet
    environ = {"CALLGRADE_JUDGE_MODEL": f"openai/{dialect.model}", "CALLGRADE_JUDGE_API_BASE": provider.base()}
    judging = build_judging(Settings.from_env({"CALLGRADE_HOME": str(tmp_path)} | environ))
    assert judging is not None
    made = plan(REQUEST)
    votes = []
    for repeat in range(2):
        spending = Spending()
        found = run(judging.answer(made.asks, made.trace, mode="fresh", spending=spending, repeat=repeat))
        votes += [vote for listed in found.values() for vote in listed]
    assert [type(vote) for vote in votes] == [JudgeReply, JudgeReply], votes
    assert [vote.usage.cost_usd for vote in votes] == [0.0, 0.0]
    assert len(provider.requests) == dialect.requests, "what an endpoint refuses is found out once"
    assert {request.headers.get("authorization") for request in provider.requests} == {"Bearer none"}
    assert provider.requests[0].body.get("max_tokens", 0) > 8_000, "there is room to think"
