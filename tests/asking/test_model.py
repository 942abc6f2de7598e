"""What becomes of a provider's answers, through the real litellm; and what litellm is not allowed to do."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from service.asking.faults import CallError, explain_failure
from service.asking.model import LiteLLM, _prepare_library
from service.core.judging.prompts import Completion, Prompt, Turn, Usage
from service.outbound.exchanges import ExchangeBounds, ExchangeNotes
from tests.conftest import Run
from tests.faults.provider import TOKENS_IN, TOKENS_OUT, Provider
from tests.launchers import find_launchers

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "label": {"enum": ["yes", "no"]},
        "reason": {"type": "string"},
        "quotes": {"type": "array", "items": {"type": "string"}},
        "token": {"type": "string"},
    },
    "required": ["label", "reason", "quotes", "token"],
    "additionalProperties": False,
}
TURNS = (Turn("system", "Judge."), Turn("user", 'Echo the token "abcd1234".'))
KEY = "canary/key+no 1"
PRICED = "gpt-4o-mini"

Form = Literal["auto", "schema", "tool", "text"]


def prompt(model: str = "good", **changes: Any) -> Prompt:
    return Prompt(**{"model": f"openai/{model}", "turns": TURNS, "schema": SCHEMA, "max_tokens": 50} | changes)


def client(provider: Provider, reply: Form = "auto", script: str | None = None) -> LiteLLM:
    return LiteLLM(api_base=provider.base(script), api_key=KEY, reply=reply)


def outcome(run: Run, model: LiteLLM, asked: Prompt) -> Completion | CallError:
    try:
        return run(model.complete(asked))
    except CallError as error:
        return error


def test_a_reply_is_read(run: Run, provider: Provider) -> None:
    reply = outcome(run, client(provider), prompt("says-no"))
    assert isinstance(reply, Completion)
    assert json.loads(reply.text) == {"label": "no", "reason": "because it is so", "quotes": [], "token": "abcd1234"}
    assert (reply.model, reply.tokens) == ("says-no", ())
    assert reply.usage == Usage(TOKENS_IN, TOKENS_OUT, None)


UNKNOWN = Usage()
BILLED = Usage(TOKENS_IN, TOKENS_OUT, None)

# model, cause, HTTP status, retryable, what is billed
FAULTS = [
    ("429-after-2", "provider_error", 429, True, None),
    ("429-bare", "provider_error", 429, True, None),
    ("quota", "quota_exhausted", 429, False, None),
    ("400", "provider_error", 400, False, None),
    ("401", "unauthorized", 401, False, None),
    ("403", "provider_error", 403, False, None),
    ("404", "unknown_model", 404, False, None),
    ("500", "provider_error", 500, True, None),
    ("503", "provider_error", 503, True, None),
    ("reset", "provider_error", None, True, UNKNOWN),
    ("truncated-body", "provider_error", None, True, UNKNOWN),
    ("bad-json", "provider_error", None, True, UNKNOWN),
    ("html", "provider_error", None, True, UNKNOWN),
    ("error-in-200", "provider_error", None, True, UNKNOWN),
    ("empty-choices", "provider_error", None, True, BILLED),
    ("null-content", "provider_error", None, True, BILLED),
    ("refusal", "refused", None, False, BILLED),
    ("length", "truncated", None, False, BILLED),
    ("filter", "filtered", None, False, BILLED),
    ("whole-length", "truncated", None, False, BILLED),
    ("whole-filter", "filtered", None, False, BILLED),
    ("model-length", "truncated", None, False, BILLED),
    ("finish-error", "provider_error", None, True, BILLED),
    ("finish-abort", "provider_error", None, True, BILLED),
    ("two-choices", "invalid_judgement", None, False, BILLED),
    ("text-and-call", "invalid_judgement", None, False, BILLED),
    ("words", "provider_error", 400, False, None),
    ("words-in-500", "provider_error", 500, True, None),
    ("words-in-200", "provider_error", None, True, UNKNOWN),
    ("words-alone", "provider_error", None, True, UNKNOWN),
    ("odd-shape", "provider_error", None, True, UNKNOWN),
]
SAID = re.compile(
    r"canary|traceback|litellm|exception|error code|/srv|site-packages|incorrect api|unknown param", re.IGNORECASE
)
"""What a provider says, or litellm of it, and nobody repeats."""


@pytest.mark.parametrize(("kind", "wanted"), [(row[0], row[1:]) for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_a_fault_is_told_apart_and_litellm_does_not_try_again(
    run: Run, provider: Provider, kind: str, wanted: tuple[object, ...]
) -> None:
    error = outcome(run, client(provider), prompt(f"fault-{kind}"))
    assert isinstance(error, CallError)
    assert (error.cause, error.status, error.retryable, error.usage) == wanted
    assert error.retry_after == (2.0 if kind == "429-after-2" else None)
    assert len(provider.requests) == 1
    assert error.__context__ is None  # which would quote the key
    assert not SAID.search(error.reason)
    assert len(error.reason) < 120


def test_without_a_key_or_a_provider_nothing_is_asked(
    run: Run, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.endswith(("_API_KEY", "_ADMIN_KEY", "_AUTH_TOKEN"))]:
        monkeypatch.delenv(name)
    keyless = LiteLLM(api_base=None, api_key=None, reply="auto")
    for model in (
        "openai/gpt-4o-mini",
        "anthropic/claude-haiku-4-5",
        "gemini/gemini-2.5-flash",
        "azure/x",
        "moonshot/x",
    ):
        error = outcome(run, keyless, replace(prompt(), model=model))
        assert isinstance(error, CallError), model
        assert (error.cause, error.retryable, error.usage) == ("unauthorized", False, None), model
    error = outcome(run, client(provider), replace(prompt(), model="no-such-provider-or-model"))
    assert isinstance(error, CallError)
    assert (error.cause, error.retryable, error.usage) == ("unknown_model", False, None)
    assert not provider.requests


QUOTED = [
    "litellm.APIError: APIError: OpenAIException - the tool said: missing API key",
    'litellm.APIError: AnthropicException - {"error": "Missing credentials. Please pass an `api_key`"}',
    "litellm.APIConnectionError: GeminiException - Expecting value: 'GEMINI_API_KEY is not set'",
]


@pytest.mark.parametrize("text", QUOTED)
def test_what_a_reply_quotes_of_keys_closes_none(text: str) -> None:
    assert explain_failure(RuntimeError(text), ExchangeNotes(ExchangeBounds())).cause == "provider_error"


# How a reply is asked for


def sent(run: Run, provider: Provider, reply: Form, model: str = "good", **changes: Any) -> dict[str, Any]:
    outcome(run, client(provider, reply), prompt(model, **changes))
    return provider.requests[-1].body


def test_a_schema_is_strict_and_a_tool_is_forced(run: Run, provider: Provider) -> None:
    wrapped = sent(run, provider, "schema")["response_format"]
    assert (wrapped["type"], wrapped["json_schema"]["schema"], wrapped["json_schema"]["strict"]) == (
        *("json_schema", SCHEMA),
        True,
    )
    assert "response_format" in sent(run, provider, "auto", "a-model-nobody-knows"), "on a server of one's own"
    reply = outcome(run, client(provider, "tool"), prompt("says-no"))
    assert isinstance(reply, Completion)
    assert json.loads(reply.text)["label"] == "no"
    body = provider.requests[-1].body
    [tool] = body["tools"]
    assert body["tool_choice"] == {"type": "function", "function": {"name": tool["function"]["name"]}}
    assert "response_format" not in body
    error = outcome(run, client(provider, "tool"), prompt("fault-two-calls"))
    assert isinstance(error, CallError)
    assert (error.cause, error.retryable) == ("invalid_judgement", False)


# model, reasoning -> what is said of it, and the tokens that there is room for beside the reply
REASONING: list[tuple[str, str | int | None, dict[str, Any], int]] = [
    ("o3-mini", None, {}, 8_192),
    ("o3-mini", "low", {"reasoning_effort": "low"}, 4_096),
    ("o3-mini", 20_000, {"reasoning_effort": "high"}, 20_000),
    (PRICED, None, {}, 0),
    ("qwen3:14b", None, {}, 8_192),  # of a server of one's own, which nobody has a price for
    ("qwen3:14b", "none", {"reasoning_effort": "none"}, 0),
]


@pytest.mark.parametrize(("name", "reasoning", "said", "room"), REASONING)
def test_a_model_that_thinks_has_room_for_it(
    run: Run, provider: Provider, name: str, reasoning: Any, said: dict[str, Any], room: int
) -> None:
    outcome(run, client(provider), prompt(name, reasoning=reasoning, temperature=0.0))
    body = provider.requests[-1].body
    assert {key: value for key, value in body.items() if key == "reasoning_effort"} == said
    assert body.get("max_completion_tokens", body.get("max_tokens")) == 50 + room
    assert ("temperature" in body) is (name != "o3-mini" and not said)


REFUSALS: list[tuple[Form, str, list[str], dict[str, Any]]] = [
    ("schema", "This response_format type is unavailable now", ["response_format"], {}),
    ("schema", "failed to parse grammar", ["response_format"], {}),
    ("tool", '{"loc": ["body", "tool_choice"], "msg": "Extra inputs are not permitted"}', ["tools", "tool_choice"], {}),
    (
        "text",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        ["max_tokens"],
        {"max_completion_tokens": 50 + 8_192},
    ),
    ("text", "'temperature' does not support 0 with this model", ["temperature"], {}),
    ("schema", "unknown keys: response_format, temperature, max_tokens", ["response_format", "temperature"], {}),
]
"""The form of a reply, how an endpoint refuses a parameter, the parameters that it refuses, and what it is sent instead."""


@pytest.mark.parametrize(("reply", "words", "refused", "instead"), REFUSALS)
def test_what_an_endpoint_refuses_is_left_out_and_remembered(
    run: Run, provider: Provider, reply: Form, words: str, refused: list[str], instead: dict[str, Any]
) -> None:
    provider.refuses, provider.refusal = frozenset(refused), words
    model = client(provider, reply)
    asked = prompt("gpt-mine", temperature=0.0)
    first, again = outcome(run, model, asked), outcome(run, model, asked)
    assert isinstance(first, Completion)
    assert isinstance(again, Completion)
    bodies = [request.body for request in provider.requests]
    assert len(bodies) == 3
    assert set(refused) <= bodies[0].keys()
    assert not set(refused) & {*bodies[1], *bodies[2]}
    assert instead.items() <= bodies[2].items()
    assert isinstance(outcome(run, model, prompt("another")), Completion)  # it is another endpoint, which is asked anew
    assert set(refused) & provider.requests[3].body.keys() == set(refused) - {"temperature"}


def test_a_key_of_the_environment_is_not_sent_to_a_server_of_ones_own(
    run: Run, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = LiteLLM(api_base=provider.base(), api_key=None, reply="auto")
    assert isinstance(outcome(run, model, prompt()), Completion)
    assert KEY not in str(provider.requests[-1].headers)


def test_no_callback_of_litellm_is_told_of_a_success(
    run: Run, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    import litellm
    from litellm.integrations.custom_logger import CustomLogger

    told = list[str]()

    class Telling(CustomLogger):
        async def async_log_success_event(self, kwargs: Any, **_: Any) -> None:
            told.append(kwargs["model"])

    async def asked() -> None:
        model = client(provider)
        await model.complete(prompt("good"))
        await litellm.acompletion(
            model="openai/says-no", api_base=provider.base(), api_key=KEY, messages=[{"role": "user", "content": "Hi"}]
        )
        for _ in range(100):
            if told:
                break
            await asyncio.sleep(0.05)

    monkeypatch.setattr(litellm, "callbacks", [Telling()])
    run(asked())
    assert told == ["says-no"]  # that of somebody else is told as ever


# Cost


# script of the provider -> usage, and its cost beside that of a plain reply
USAGES: list[tuple[str | None, Usage, str]] = [
    (None, Usage(TOKENS_IN, TOKENS_OUT), "as much"),
    ("cached", Usage(TOKENS_IN, TOKENS_OUT, tokens_cached=80), "less"),
    ("overcached", Usage(TOKENS_IN, TOKENS_OUT), "any"),
    ("no", Usage(), "unknown"),
    ("negative", Usage(), "unknown"),
    ("absurd", Usage(None, TOKENS_OUT), "unknown"),
]


@pytest.mark.parametrize(("kind", "usage", "cost"), USAGES)
def test_what_cannot_be_is_unknown_and_the_rest_costs_what_the_price_map_says(
    run: Run, provider: Provider, kind: str | None, usage: Usage, cost: str
) -> None:
    model = client(provider, script=kind and f"fault-{kind}-usage")
    asked = prompt(PRICED, turns=(Turn("user", "word " * 100),), max_tokens=TOKENS_OUT)
    reply = outcome(run, model, asked)
    assert isinstance(reply, Completion)
    assert replace(reply.usage, cost_usd=None) == usage
    prices = run(_prepare_library()).cost_per_token(model=PRICED, prompt_tokens=TOKENS_IN, completion_tokens=TOKENS_OUT)
    found, plain = reply.usage.cost_usd, sum(prices)
    assert (found is None) is (cost == "unknown")
    assert cost != "as much" or found == pytest.approx(plain)
    assert cost != "less" or 0 < (found or 0) < plain
    assert run(model.worst_usd(asked)) >= plain > 0
    assert run(model.worst_usd(prompt("a-model-nobody-knows"))) is None


# model, whether the beginning of a prompt is marked
MARKED = [("anthropic/claude-haiku-4-5", True), ("openai/good", False)]


@pytest.mark.parametrize(("model", "marked"), MARKED)
def test_the_beginning_of_a_prompt_is_marked_where_a_provider_needs_it(
    run: Run, provider: Provider, model: str, marked: bool
) -> None:
    asked = Prompt(model, TURNS, SCHEMA, 50)
    outcome(run, client(provider, script="fault-none"), asked)
    [request] = provider.requests
    assert ("cache_control" in json.dumps(request.body)) is marked
    assert [block["text"] for block in request.body.get("system", []) if "cache_control" in block] == [
        "Judge."
    ] * marked


# Secrets and prompts


@contextmanager
def everything_logged() -> Iterator[io.StringIO]:
    root, said = logging.getLogger(), io.StringIO()
    handler, level = logging.StreamHandler(said), root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield said
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


def test_no_secret_and_no_prompt_is_told(run: Run, provider: Provider, capfd: pytest.CaptureFixture[str]) -> None:
    model, kinds = client(provider), ["good", *(f"fault-{row[0]}" for row in FAULTS)]
    with everything_logged() as said:
        told = [repr(outcome(run, model, prompt(kind))) for kind in kinds]
        told += [repr(model), repr(vars(model)), said.getvalue(), *capfd.readouterr()]
    assert provider.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert any("does not accept the key" in text for text in told)  # the key was echoed
    assert not [text for text in told if KEY in text]
    assert "abcd1234" not in said.getvalue()


SAYING = [row[0] for row in FAULTS if row[0].startswith("words")]
SAYING += ["odd-shape", "odd-usage", "html", "401", "quota", "400", "none", "long-model", "negative-usage"]
SAYING += ["empty-choices", "reset", "302"]


def test_nothing_that_came_is_on_standard_error_or_in_logs() -> None:
    said = alone(
        f"""
        import asyncio, logging, os, sys
        os.dup2(1, 2)  # all that is said is looked at
        if sys.argv[1:]: logging.basicConfig(level=logging.DEBUG)
        from service.core.judging.prompts import Prompt, Turn
        from service.errors import JudgeError
        from service.asking.model import LiteLLM, disconnect
        from tests.faults.provider import Provider, serving
        async def play(provider):
            for name in ("openai/x", "anthropic/claude-haiku-4-5", "gemini/gemini-2.5-flash", "mistral/x", "groq/x"):
                for kind in {SAYING!r}:
                    model = LiteLLM(api_base=provider.base("fault-" + kind), api_key="none", reply="auto")
                    try:
                        await model.complete(Prompt(name, (Turn("user", "x"),), {{"type": "object"}}, 9))
                    except JudgeError:
                        pass
            await disconnect()
        logging.getLogger("asyncio").setLevel(logging.INFO)
        with serving(Provider()) as provider:
            asyncio.run(play(provider))
        assert len(provider.requests) >= 75, len(provider.requests)
        """,
        program=find_launchers() / "python",
    )
    assert not said


# The library and its surroundings, each in a process of its own; what is not about loading is forked from one that has


def alone(code: str, *, program: str | Path = sys.executable, **environ: str) -> str:
    done = subprocess.run(
        [program, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environ},
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


def test_importing_the_module_does_not_import_litellm() -> None:
    alone(
        "import sys, service.asking.model, service.asking.calls; assert not {'litellm', 'openai', 'httpx'} & sys.modules.keys()"
    )


def test_loading_litellm_connects_to_nothing_and_leaves_the_environment_as_it_was(tmp_path: Path) -> None:
    """Whatever a file `.env` says where it is loaded."""
    (tmp_path / ".env").write_text("PLANTED=1\n")
    said = alone(
        f"""
        import asyncio, logging, os, sys
        os.chdir({str(tmp_path)!r})
        seen, before = [], dict(os.environ)
        sys.addaudithook(lambda event, _: seen.append(event) if event.startswith("socket.") else None)
        from service.core.judging.prompts import Prompt
        from service.asking.model import LiteLLM
        logging.basicConfig(level=logging.DEBUG)
        logging.getLogger("asyncio").setLevel(logging.WARNING)
        model = LiteLLM(api_base=None, api_key="none", reply="auto")
        with asyncio.Runner() as runner:
            runner.get_loop()  # it has a pair of sockets of its own
            seen.clear()
            runner.run(model.worst_usd(Prompt("openai/gpt-4o", (), {{}}, 1)))
        assert "litellm" in sys.modules
        assert not {{"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"}} & set(seen), seen
        assert not {{name for name in os.environ if os.environ[name] != before.get(name)}} - {{"TIKTOKEN_CACHE_DIR"}}
        assert not [name for name in ("LiteLLM", "LiteLLM Router") if logging.getLogger(name).handlers]
        """
    )
    assert not said
