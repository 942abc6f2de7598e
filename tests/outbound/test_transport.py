"""What passes between litellm and a provider, by every way that litellm has: how large, how long, to where."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import textwrap
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.asking.faults import CallError
from service.asking.model import LiteLLM
from service.core.judging.prompts import Completion, Prompt, Turn, Usage
from service.outbound.exchanges import ExchangeBounds, ExchangeNotes, holds_more_values
from service.outbound.transport import BoundTransport, close_connections
from tests.conftest import Run
from tests.faults.provider import FLOOD, Provider
from tests.faults.receiver import Scripted, crowded, http, scripted
from tests.launchers import find_launchers

pytestmark = pytest.mark.filterwarnings("ignore:Items? .* on TypedDict class:UserWarning")  # litellm's own, once

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"label": {"enum": ["yes", "no"]}}, "required": ["label"]}

# One of each way: OpenAI's SDK, Azure's, litellm's own client with several dialects, and a signed request.
ROUTES = [
    "openai/x",
    "azure/x",
    "anthropic/claude-haiku-4-5",
    "gemini/gemini-2.5-flash",
    "mistral/mistral-small",
    "bedrock/anthropic.claude-3-haiku-20240307-v1:0",
    "zai/x",
]


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in SURROUNDINGS.items():
        monkeypatch.setenv(name, value)
    return request.param


SURROUNDINGS = {
    "AZURE_API_VERSION": "2024-06-01",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_REGION": "us-east-1",
}


def asked(run: Run, base: str, model: str, bounds: ExchangeBounds | None = None) -> Completion | CallError:
    port = LiteLLM(api_base=base, api_key="the-key", reply="auto", bounds=bounds)
    try:
        return run(port.complete(Prompt(model, (Turn("user", "Judge."),), SCHEMA, 50)))
    except CallError as error:
        return error


def refused(run: Run, base: str, model: str, bounds: ExchangeBounds | None = None) -> CallError:
    outcome = asked(run, base, model, bounds)
    assert isinstance(outcome, CallError)
    return outcome


# How large


LARGE = [
    ("flood", "the reply passes 8388608 bytes"),
    ("crowd", "the reply holds more than 20000 values"),
    ("crowd-in-500", "the reply holds more than 20000 values"),
    ("deep", "the provider's reply could not be read"),
]


@pytest.mark.parametrize(("kind", "reason"), LARGE)
def test_a_reply_that_is_too_large_is_not_parsed(
    run: Run, provider: Provider, route: str, kind: str, reason: str
) -> None:
    error = refused(run, provider.base(f"fault-{kind}"), route)
    assert (error.cause, error.reason) == ("provider_error", reason)
    assert kind == "deep" or not error.retryable
    assert len(provider.requests) == 1


def test_what_is_too_long_takes_no_memory(provider: Provider) -> None:
    grown = alone(
        """
        import asyncio, resource, sys
        from service.core.judging.prompts import Prompt, Turn
        from service.errors import JudgeError
        from service.asking.model import LiteLLM, disconnect

        async def asked(base, model):
            port = LiteLLM(api_base=base, api_key="none", reply="auto")
            try:
                await port.complete(Prompt(model, (Turn("user", "Judge."),), {"type": "object"}, 50))
            except JudgeError:
                pass

        async def play(good, *bad):
            models = ["openai/x", "anthropic/claude-haiku-4-5", "mistral/mistral-small"]
            for model in models:
                await asked(good, model)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for base in bad:
                for model in models:
                    await asked(base, model)
            print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
            await disconnect()

        asyncio.run(play(*sys.argv[1:]))
        """,
        *[provider.base(f"fault-{kind}") for kind in ("400", "flood")],
    )
    assert len(provider.requests) == 6
    assert int(grown) < 64  # MiB
    assert FLOOD > 3 * 64 * 2**20


def alone(code: str, *args: str) -> str:
    command = [find_launchers() / "python", "-c", textwrap.dedent(code), *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **SURROUNDINGS})
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_bound_is_what_is_set(run: Run, provider: Provider) -> None:
    assert isinstance(asked(run, provider.base(), "openai/x", ExchangeBounds(max_bytes=10_000)), Completion)
    assert (
        refused(run, provider.base(), "openai/x", ExchangeBounds(max_bytes=100)).reason == "the reply passes 100 bytes"
    )


def test_a_compressed_reply_is_not_asked_for_and_not_read(run: Run, provider: Provider, route: str) -> None:
    """It may hide any size."""
    error = refused(run, provider.base("fault-gzip"), route)
    assert provider.requests[0].headers["accept-encoding"] == "identity"
    assert (error.cause, error.retryable, error.usage) == ("provider_error", True, Usage())
    assert error.reason == "the reply is compressed, which was not asked for"


def test_log_probabilities_have_room(run: Run, provider: Provider) -> None:
    port = LiteLLM(api_base=provider.base("fault-all-logprobs"), api_key="none", reply="auto")
    prompt = Prompt("openai/x", (Turn("user", "Judge."),), SCHEMA, 1_000, logprobs=True, reasoning="none")
    assert len(run(port.complete(prompt)).tokens) == 1_000


@given(st.recursive(st.none() | st.text(max_size=9), st.lists, max_leaves=60), st.integers(1, 40))
def test_what_is_counted_is_the_values(value: Any, most: int) -> None:
    def count(one: Any) -> int:
        return 1 + sum(map(count, one)) if isinstance(one, list) else 1

    if holds_more_values(json.dumps(value, ensure_ascii=False).encode(), most):
        assert count(value) > most


HOSTILE = [b'"' * 2**20, b'"' + b'\\"' * 2**20, b"\\" * 2**20, b"[" * 2**20, b'"\\', b'["' + b",[{" * 2**20 + b'"]']


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: repr(body[:8]))
def test_counting_ends_whatever_is_counted(body: bytes) -> None:
    assert holds_more_values(body, 10) is (body[:2] == b"[[")


GOOD = ["anthropic/claude-haiku-4-5", "gemini/gemini-2.5-flash"]


@pytest.mark.parametrize("model", GOOD)
def test_a_good_reply_passes_by_every_way(run: Run, provider: Provider, model: str) -> None:
    reply = asked(run, provider.base("fault-none"), model)
    assert isinstance(reply, Completion)
    assert reply.text == '{"label": "yes"}'


@pytest.mark.parametrize("model", ["aiohttp_openai/x", "nlp_cloud/x", "ollama/llama3", "ragflow/chat/1/x"])
def test_a_way_that_has_no_bounds_is_not_gone(run: Run, provider: Provider, model: str) -> None:
    error = refused(run, provider.base(), model)
    assert (error.cause, error.retryable, error.usage) == ("provider_error", False, None)
    assert not provider.requests


def test_every_provider_is_asked_through_our_transport_or_not_at_all() -> None:
    """As litellm is installed: whoever it asks in another way now is no longer to be named in `OVER_HTTP`."""
    said = alone(
        """
        import asyncio, json, sys
        import httpx
        from service.asking.model import LiteLLM, OTHERWISE, OVER_HTTP, _prepare_library
        from service.core.judging.prompts import Prompt, Turn
        from service.errors import JudgeError
        from service.outbound.transport import BoundTransport

        sent, elsewhere = [], []

        async def answer(transport, request):
            sent.append(request.url)
            transport._notes.status = 503
            return httpx.Response(503, request=request, json={})

        def look(event, args):
            if event in ("socket.connect", "socket.getaddrinfo"):
                elsewhere.append(args)
                raise OSError("nobody is there")

        async def play():
            library = await _prepare_library()
            BoundTransport.handle_async_request = answer
            sys.addaudithook(look)
            wrong = {}
            for provider in sorted({*OVER_HTTP, *library.openai_compatible_providers, "openai", "custom_openai", "azure"}):
                port = LiteLLM(api_base="http://127.0.0.1:9/v1", api_key="none", reply="auto")
                name = "anthropic.claude-3-haiku-20240307-v1:0" if provider == "bedrock" else "x"
                sent.clear(), elsewhere.clear()
                try:
                    await port.complete(Prompt(f"{provider}/{name}", (Turn("user", "Judge."),), {"type": "object"}, 50))
                except JudgeError as error:
                    if len(sent) != (provider not in OTHERWISE) or elsewhere:
                        wrong[provider] = [len(sent), str(elsewhere), error.reason]
            print(json.dumps(wrong))

        asyncio.run(play())
        """
    )
    assert json.loads(said) == {}


def test_a_reply_that_came_by_no_way_of_ours_is_refused(
    run: Run, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = BoundTransport.handle_async_request

    async def unnoted(transport: BoundTransport, request: httpx.Request) -> httpx.Response:
        response = await send(transport, request)
        transport._notes.answers = 0
        return response

    monkeypatch.setattr(BoundTransport, "handle_async_request", unnoted)
    assert "cannot be limited" in refused(run, provider.base(), "openai/good").reason


def test_of_several_exchanges_the_last_one_stands(run: Run) -> None:
    """A quota that one answer told of is not read out of the next, which never came."""
    notes = ExchangeNotes(ExchangeBounds())
    transport = BoundTransport(notes, lambda: True)

    async def twice(*urls: str) -> list[tuple[Any, ...]]:
        seen: list[tuple[Any, ...]] = []
        for url in urls:
            with contextlib.suppress(httpx.TransportError):
                await transport.handle_async_request(httpx.Request("POST", url))
            seen.append((notes.status, notes.retry_after, notes.refusal, notes.fault, notes.sent, notes.answers))
        await close_connections()
        return seen

    head = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\n"
    with scripted(http(b'{"code": "insufficient_quota"}', head)) as refusing:
        urls = f"http://127.0.0.1:{refusing.port}/", "http://127.0.0.1:1/"
        assert run(twice(*urls)) == [
            (429, "7", b'{"code": "insufficient_quota"}', None, True, 1),
            (None, "", b"", "no connection", True, 1),
        ]


# To where


@pytest.fixture
def elsewhere() -> Iterator[Scripted]:
    with scripted(http(b"{}"), everywhere=True) as server:
        yield server


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(run: Run, provider: Provider, route: str, status: int, elsewhere: Scripted) -> None:
    provider.elsewhere = f"http://127.0.0.1:{elsewhere.port}/latest/meta-data/"
    error = refused(run, provider.base(f"fault-{status}"), route)
    assert (error.cause, error.status, error.retryable) == ("provider_error", status, False)
    assert error.reason == f"the provider answered {status}, and redirects are not followed"
    assert len(provider.requests) == 1
    assert elsewhere.untouched()


@pytest.mark.parametrize("address", ["169.254.169.254", "168.63.129.16", "100.100.100.200", "[fd00:ec2::254]"])
@pytest.mark.parametrize("way", ["openai/x", "anthropic/claude-haiku-4-5"])
def test_no_provider_stands_where_metadata_do(run: Run, address: str, way: str) -> None:
    error = refused(run, f"http://{address}/v1", way)
    assert (error.cause, error.retryable, error.usage) == ("provider_error", False, None)
    assert error.reason == "the provider has an address that may not be connected to"


def test_a_name_is_looked_up_before_its_address_is_checked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    found = socket.getaddrinfo("127.0.0.1", 80, type=socket.SOCK_STREAM)
    moved = [(*one[:4], ("169.254.169.254", 80)) for one in found]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: moved)  # the system's, not ours
    error = refused(run, "http://judge.example/v1", "openai/x")
    assert error.reason == "the provider has an address that may not be connected to"


# How often. litellm asks once more by itself where a connection breaks; nobody pays twice here.


@pytest.mark.parametrize("kind", ["reset", "truncated-body", "500", "429-bare"])
def test_nothing_is_asked_twice(run: Run, provider: Provider, route: str, kind: str) -> None:
    refused(run, provider.base(f"fault-{kind}"), route)
    assert len(provider.requests) == 1


# How long. Each of these would last for ever; which of the two times ended it is what is asserted.


WAYS = ["openai/x", "anthropic/claude-haiku-4-5"]


@pytest.mark.parametrize("way", WAYS)
def test_a_connection_that_is_not_taken_is_given_up(run: Run, way: str) -> None:
    with crowded() as port:
        error = refused(run, f"http://127.0.0.1:{port}/v1", way, ExchangeBounds(20.0, connect_s=0.3))
    assert (error.cause, error.retryable, error.usage, error.sent) == ("unreachable", True, None, False)
    assert error.reason == "no connection to the provider in 0.3 s"


@pytest.mark.parametrize("kind", ["hang", "drip-head", "drip"])
@pytest.mark.parametrize("way", WAYS)
def test_a_reply_that_does_not_begin_or_end_is_given_up(run: Run, provider: Provider, way: str, kind: str) -> None:
    error = refused(run, provider.base(f"fault-{kind}"), way, ExchangeBounds(0.5))
    assert (error.cause, error.retryable, error.usage) == ("timeout", True, Usage())
    assert error.reason == "no whole reply in 0.5 s"
    assert len(provider.requests) == 1
