"""The one module that talks to models, through litellm, which it imports on the first call.

It uses litellm only for what it does well, the dialects of the providers: litellm retries nothing, caches nothing, reports to
nobody and fetches nothing on import. Every request goes through a client that we hand in: `service.outbound.transport` carries
what is sent and received, `service.asking.replies` reads what litellm returns, and `service.asking.faults` explains what it
raises.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, cast

from pydantic import JsonValue, SecretStr

from service import heap
from service.asking.faults import MAX_PAUSE_S, NO_KEY, CallError, explain_failure, find_refused_params
from service.asking.prices import Costs, Library, look_up_cost, look_up_costs
from service.asking.replies import (
    ReplyForm,
    build_reasoning_params,
    build_reply_params,
    count_thinking_tokens,
    drop_limits,
    read_completion,
)
from service.core.judging.prompts import Completion, Prompt
from service.logs.quiet import extend_environ, silence
from service.outbound.exchanges import ExchangeBounds, ExchangeNotes

if TYPE_CHECKING:
    import httpx

OpenTransport = Callable[[ExchangeNotes], "httpx.AsyncBaseTransport"]

LITELLM_TIMEOUT_S = 600.0
"""Seconds after which litellm itself gives up. Not a deadline, as slowly arriving bytes extend it. The caller has one."""

TOP_LOGPROBS = 20
"""Alternatives requested for each token; the most that OpenAI allows."""

CACHE_WRITE = 1.25
"""What a token costs, at most, that is written to a provider's cache for five minutes, beside one that is not."""

IMPORT_ENVIRON = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # prices come from the package, not from the network
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",  # likewise what Anthropic's models take
    "LITELLM_MODE": "PRODUCTION",  # a .env file that lies about is not loaded into our environment
}
_QUIET_SETTINGS: Mapping[str, JsonValue] = {
    "telemetry": False,
    "suppress_debug_info": True,  # it prints advice
    "turn_off_message_logging": True,
}
_QUOTING_LOGGERS = (
    *("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx", "httpcore"),
    *("aiohttp", "aiohttp.client", "aiohttp.internal"),
)
"""Loggers that quote prompts, addresses and what a provider sent."""
_LOADER_THREAD = ThreadPoolExecutor(1, thread_name_prefix="litellm-import")

_OPENAI_COMPATIBLE = frozenset({"openai", "hosted_vllm", "lm_studio", "llamafile", "custom_openai"})
"""OpenAI's protocol, or a local server's, at an address that the user chooses; such servers accept a JSON schema."""

OVER_HTTP = frozenset(
    [
        *("anthropic", "azure_ai", "bedrock", "bedrock_mantle", "bytez", "cometapi", "compactifai", "databricks"),
        *("datarobot", "deepseek", "edenai", "fireworks_ai", "gemini", "groq", "heroku", "hosted_vllm", "minimax"),
        *("mistral", "nadir", "openrouter", "ovhcloud", "sagemaker_chat", "snowflake", "together_ai", "xai"),
    ]
)
"""Providers that litellm asks by the HTTP client that a call hands in, and in no other way."""

OTHERWISE = frozenset({"anyscale", "chatgpt", "clarifai", "github_copilot", "ragflow"})
"""Providers that litellm counts as compatible with OpenAI and asks in another way."""


class Model(Protocol):
    """Answers prompts."""

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply to a prompt. Raises JudgeError for every failure, and otherwise only CancelledError."""
        ...


class _Traits(NamedTuple):
    """What must be known of a model before a request."""

    route: str
    """The name by which litellm is asked for it."""
    provider: str
    params: frozenset[str]
    form: ReplyForm
    key: str | None = None
    """The provider's key, as litellm finds it where none is set."""
    base: str | None = None
    """The provider's address, likewise."""
    refused: frozenset[str] = frozenset()
    """Parameters that the endpoint does not take, by its own answer to an earlier request."""


class LiteLLM:
    """Models through litellm, with one key and one address. Use it from one event loop, as connections are kept.

    `api_base` None: the provider's own address. `api_key` None: the provider's environment variables are read, but nothing that
    is found there is sent to an OpenAI-compatible server at an `api_base`, which may be anybody's. `reply` chooses how the model
    is made to reply with an object; "auto": by JSON schema where litellm knows that the model accepts one and for
    OpenAI-compatible servers at an `api_base`, else by a forced tool call where the provider has tools, else by instruction.
    `bounds` apply to each exchange with the provider; `longest_pause` caps what its Retry-After may demand, in seconds.
    `local`: whether a model without a known price costs nothing, because it runs on a server of the user's own.
    """

    def __init__(
        self,
        *,
        api_base: str | None,
        api_key: str | None,
        reply: Literal["auto", "schema", "tool", "text"],
        bounds: ExchangeBounds | None = None,
        longest_pause: float = MAX_PAUSE_S,
        local: bool = False,
    ) -> None:
        self._local = local
        self._api_base = api_base
        self._api_key = SecretStr(api_key) if api_key else None
        self._reply: Literal["auto", "schema", "tool", "text"] = reply
        self._bounds = bounds or ExchangeBounds()
        self._longest_pause = longest_pause
        self._traits: dict[str, _Traits] = {}
        self._costs: dict[str, Costs] = {}
        self._clients: dict[tuple[object, ...], object] = {}

    async def complete(self, prompt: Prompt, over: OpenTransport | None = None) -> Completion:
        """Return the reply. Raises CallError for every failure. `over` opens what stands in for the way to the provider."""
        library = await _prepare_library()
        price, prompt = self._add_thinking_room(library, prompt)
        notes = ExchangeNotes(self._bounds.with_logprobs(prompt.max_tokens) if prompt.logprobs else self._bounds)
        try:
            reply = await self._ask(library, prompt, notes, over or _open_transport)
        except CallError as error:
            fault = error
        except Exception as error:  # noqa: BLE001 (whatever litellm raises is a fault of the call)
            fault = explain_failure(error, notes, longest_pause=self._longest_pause)
        else:
            if notes.answers:
                return read_completion(reply, lambda: look_up_cost(library, reply, prompt.model, price))
            fault = _build_unbounded_error()
        raise fault  # here it has no context, which would quote keys

    async def _ask(self, library: Library, prompt: Prompt, notes: ExchangeNotes, over: OpenTransport) -> object:
        """Send the request; if the endpoint refuses parameters by name, once more without them. What then works is remembered."""
        from service.outbound.transport import CURRENT  # noqa: PLC0415 (with litellm)

        traits = self._traits.get(prompt.model) or self._learn(library, prompt.model)
        while True:
            request = self._build_request(library, traits, prompt)
            client = self._find_client(library, traits, request)
            token = CURRENT.set(over(notes))
            try:
                reply = await library.acompletion(**request, client=client)
            except Exception:
                refused = find_refused_params(notes, request) - traits.refused
                if not refused:
                    raise
                traits = traits._replace(refused=traits.refused | refused)
            else:
                if traits.refused:
                    self._traits[prompt.model] = traits
                return reply
            finally:
                CURRENT.reset(token)

    async def fetch(self, request: httpx.Request, bounds: ExchangeBounds) -> httpx.Response:
        """Send something other than a question to a provider. Raises CallError where no answer comes, or an error."""
        await _prepare_library()
        notes = ExchangeNotes(bounds)
        try:
            return (await _open_transport(notes).handle_async_request(request)).raise_for_status()
        except Exception as error:  # noqa: BLE001 (as above)
            raise explain_failure(error, notes, longest_pause=self._longest_pause) from None

    async def find_batch_rate(self, model: str) -> float:
        """Return the price in the provider's batches, as a share of the usual one: by the local price map, else half."""
        try:
            info = (await _prepare_library()).get_model_info(model)
            return info["output_cost_per_token_batches"] / info["output_cost_per_token"]
        except Exception:  # noqa: BLE001 (it has no such price, or raises a bare Exception for an unknown model)
            return 0.5

    async def worst_usd(self, prompt: Prompt) -> float | None:
        """Return the most that a call can cost, by the local price map and the model's name; None for an unknown price.

        A token of the prompt is at least one byte (English has four, other scripts and base64 less than two), the schema counts
        too, what is written to a cache costs more, and the reply uses all of `max_tokens` and of its room for thinking.
        """
        price, prompt = self._add_thinking_room(await _prepare_library(), prompt)
        text = "".join(turn.text for turn in prompt.turns) + str(prompt.schema)
        tokens = len(text.encode("utf-8", "replace")) + 16 * (len(prompt.turns) + 1)
        tokens *= CACHE_WRITE if "claude" in prompt.model else 1.0
        return price and tokens * price[0] + prompt.max_tokens * price[1]

    def _add_thinking_room(self, library: Library, prompt: Prompt) -> tuple[tuple[float, float] | None, Prompt]:
        """Return the price, and the prompt with room for the model's thinking."""
        if prompt.model not in self._costs:
            self._costs[prompt.model] = look_up_costs(library, prompt.model, is_local=self._local)
        price, thinks = self._costs[prompt.model]
        room = count_thinking_tokens(prompt.reasoning, thinks=thinks)
        return price, replace(prompt, max_tokens=prompt.max_tokens + room)

    def _build_request(self, library: Library, traits: _Traits, prompt: Prompt) -> dict[str, Any]:
        takes = traits.params - traits.refused
        reasoning = build_reasoning_params(prompt.reasoning, takes)
        form = "text" if reasoning and traits.form == "tool" else traits.form  # a model that thinks cannot be forced
        provider, own_server = traits.provider, self._api_base and traits.provider in _OPENAI_COMPATIBLE
        messages: list[dict[str, Any]] = [{"role": turn.role, "content": turn.text} for turn in prompt.turns]
        if provider == "anthropic" or (provider in {"bedrock", "openrouter"} and "claude" in prompt.model):
            # Only what a mark ends is cached: the first message, which all questions of a judge begin with.
            block = {"type": "text", "text": messages[0]["content"], "cache_control": {"type": "ephemeral"}}
            messages[0]["content"] = [block]
        schema = dict(prompt.schema) if own_server else drop_limits(dict(prompt.schema))
        params: dict[str, Any] = {
            "model": traits.route,
            "messages": messages,
            "max_retries": 0,  # and never num_retries, which adds a loop of litellm's own
            # Else some drop it, and ask three times; of Anthropic litellm would put it into the body, where it is refused.
            "allowed_openai_params": [] if provider == "anthropic" else ["max_retries"],
            "timeout": LITELLM_TIMEOUT_S,
            "drop_params": True,  # for models that take a parameter, but not every value of it
            "api_base": self._api_base,
            "api_key": self._api_key.get_secret_value() if self._api_key else "none" if own_server else None,
            "no-log": True,  # callbacks that others set up are not told of our calls
            # So nothing need be hidden from them, for which litellm would copy each reply, unless they are told nevertheless.
            "turn_off_message_logging": getattr(library, "global_disable_no_log_param", True),
            **build_reply_params("text" if traits.refused & {"response_format", "tools"} else form, schema),
            **reasoning,
        }
        limits = [name for name in ("max_tokens", "max_completion_tokens") if name not in traits.refused]
        if limits or any(self._costs[prompt.model].price or ()):  # without a price the length of a reply costs nothing
            params[limits[0] if limits else "max_completion_tokens"] = prompt.max_tokens
        if form == "tool":
            params["_skip_mcp_handler"] = True  # litellm has no public way to take tools without the package `mcp`
        if prompt.temperature is not None and "temperature" in takes and not reasoning:
            params["temperature"] = prompt.temperature
        if prompt.logprobs and {"logprobs", "top_logprobs"} <= takes:
            params |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        return params

    def _find_client(self, library: Library, traits: _Traits, request: Mapping[str, Any]) -> object:
        """Find the client for a request, which calls share. Raises CallError where litellm takes none, or for want of a key."""
        provider, base, key, version = traits.provider, request["api_base"] or traits.base, request["api_key"], None
        if provider in OVER_HTTP:
            base = key = None  # litellm gives them with each request
        elif provider == "azure":
            key = key or os.environ.get("AZURE_API_KEY")
            base = base or os.environ.get("AZURE_API_BASE")
            version = os.environ.get("AZURE_API_VERSION", library.AZURE_DEFAULT_API_VERSION)
        elif provider in {"openai", "custom_openai"} or (
            provider in library.openai_compatible_providers and provider not in OTHERWISE
        ):
            key = key or traits.key
            if provider == "openai":
                key = key or os.environ.get("OPENAI_API_KEY")
                base = base or os.environ.get("OPENAI_BASE_URL") or os.environ.get("OPENAI_API_BASE")
            if not key:  # the client would take OpenAI's
                raise CallError("unauthorized", NO_KEY, sent=False)
        else:
            raise _build_unbounded_error()
        place = (provider, base, key and SecretStr(key), version)
        if place not in self._clients:
            self._clients[place] = _build_client(provider, base, key, version)
        return self._clients[place]

    def _learn(self, library: Library, model: str) -> _Traits:
        """Find and keep the traits of a model. Raises what litellm raises for a model of an unknown provider."""
        name, provider, key, base = library.get_llm_provider(model, api_base=self._api_base)
        takes = frozenset(library.get_supported_openai_params(name, provider) or ())
        if self._reply != "auto":
            form = self._reply
        elif library.supports_response_schema(name, provider) or (self._api_base and provider in _OPENAI_COMPATIBLE):
            form = "schema"
        else:
            form = "tool" if {"tools", "tool_choice"} <= takes else "text"
        route = model
        if provider == "openai" and self._api_base and not any(self._costs[model].price or ()):
            # A server of the user's own: OpenAI's client would take half as much again of a core for each call.
            provider, route = "hosted_vllm", f"hosted_vllm/{name}"
        self._traits[model] = _Traits(route, provider, takes, form, key, base)
        return self._traits[model]


def _open_transport(notes: ExchangeNotes) -> httpx.AsyncBaseTransport:
    from service.outbound.transport import BoundTransport  # noqa: PLC0415 (with litellm)

    handlers: Any = import_module("litellm.llms.custom_httpx.http_handler")
    return BoundTransport(notes, handlers.get_ssl_configuration)


def _build_client(provider: str, base: str | None, key: str | None, version: str | None) -> object:
    """Build the client that litellm is to use: its own or OpenAI's, over the transport of whichever call it makes."""
    import httpx  # noqa: PLC0415 (with litellm)
    import openai  # noqa: PLC0415

    from service.outbound.transport import CurrentTransport  # noqa: PLC0415

    if provider in OVER_HTTP:
        handlers: Any = import_module("litellm.llms.custom_httpx.http_handler")
        handler = handlers.AsyncHTTPHandler(transport=CurrentTransport(), follow_redirects=False)
        handler.client = handler.client  # it is ours: litellm starts no task to close it
        return handler
    client = httpx.AsyncClient(transport=CurrentTransport(), trust_env=False)
    if version is not None:
        return openai.AsyncAzureOpenAI(
            api_key=key, azure_endpoint=base or "", api_version=version, http_client=client, max_retries=0
        )
    return openai.AsyncOpenAI(api_key=key, base_url=base, http_client=client, max_retries=0)


async def disconnect() -> None:
    """Close the connections to providers, before the event loop ends; a later call reconnects."""
    if _is_loaded():
        await import_module("service.outbound.transport").close_connections()


def _build_unbounded_error() -> CallError:
    reason = "litellm reaches this provider in a way that cannot be limited, so it is not asked"
    return CallError("provider_error", f"{reason}; name its OpenAI-compatible address, if it has one")


async def _prepare_library() -> Library:
    if not _is_loaded():
        try:
            await asyncio.get_running_loop().run_in_executor(_LOADER_THREAD, _load)  # three seconds
        except ImportError as error:
            reason = f"litellm cannot be used as it is installed ({type(error).__name__})"
            raise CallError("provider_error", reason) from None
    return _load()


def _is_loaded() -> bool:
    return _load.cache_info().currsize > 0


@cache
def _load() -> Library:
    """Import the library, silent and warm. The first call is always made in the one thread of `_LOADER_THREAD`."""
    silence(_QUOTING_LOGGERS)  # before they log anything
    with extend_environ(IMPORT_ENVIRON), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm  # noqa: PLC0415 (three seconds and 170 MB)

        library = cast("Library", litellm)
        for name, value in _QUIET_SETTINGS.items():
            setattr(library, name, value)
        import_module("openai.resources.chat")
        import_module("service.outbound.transport")
        # What the library would import in its first call is a second's work on the event loop. Sends nothing.
        message = {"role": "user", "content": "Hello"}
        for provider in ("openai", "hosted_vllm"):
            library.completion(model=f"{provider}/m", messages=[message], mock_response="Hello", max_retries=0)
        import_module("litellm.litellm_core_utils.default_encoding")
        # The first call of an Anthropic model would fetch this table; read now, it comes from the package.
        import_module("litellm.anthropic_beta_headers_manager").get_unsupported_headers("anthropic")
    silence(_QUOTING_LOGGERS)  # the import has given them handlers
    warnings.filterwarnings("ignore", "Pydantic serializer warnings")  # they quote what a provider sent
    heap.freeze_loaded()
    return library
