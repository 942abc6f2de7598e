"""The one module that talks to models, through litellm, which it imports on the first call.

It uses litellm only for what it does well, the dialects of the providers: litellm retries nothing, caches nothing, reports to
nobody and fetches nothing on import. `service.outbound.transport` carries what it sends and receives,
`service.asking.replies` reads what it returns, and `service.asking.failures` explains what it raises.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import warnings
from collections.abc import Awaitable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple, Protocol, cast

from pydantic import JsonValue, SecretStr

from service import heap
from service.asking.failures import MAX_PAUSE_S, explain_failure, find_refused_params
from service.asking.faults import CallError
from service.asking.reasoning import build_reasoning_params, count_thinking_tokens
from service.asking.replies import ReplyForm, build_reply_params, read_completion
from service.core.judging.prompts import Completion, Prompt
from service.logs.quiet import RedactingFilter, WithholdingFilter, extend_environ, hush
from service.logs.redaction import Redactor
from service.outbound.exchanges import ExchangeBounds, ExchangeNotes, get_notes, note_exchanges

LITELLM_TIMEOUT_S = 600.0
"""Seconds after which litellm itself gives up. Not a deadline, as slowly arriving bytes extend it. The caller has one."""

TOP_LOGPROBS = 20
"""Alternatives requested for each token; the most that OpenAI allows."""

_IMPORT_ENVIRON = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # prices come from the package, not from the network
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",  # likewise what Anthropic's models take
    "LITELLM_MODE": "PRODUCTION",  # a .env file that lies about is not loaded into our environment
}
_QUIET_SETTINGS: Mapping[str, JsonValue] = {
    "telemetry": False,
    "suppress_debug_info": True,  # it prints advice
    "turn_off_message_logging": True,
}
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_CHATTY_LOGGERS = (*_LOGGERS, "openai", "httpx", "httpcore", "aiohttp")  # they log prompts and URLs
_UNBOUNDED_PROVIDERS = frozenset({"aiohttp_openai"})
"""Providers that litellm reaches in a way that `service.outbound.transport` does not see."""
_QUOTING_LOGGERS = ("aiohttp.client", "aiohttp.internal", "asyncio")
"""Loggers that quote a provider in warnings, and are not parents of those above."""
_LOADER_THREAD = ThreadPoolExecutor(1, thread_name_prefix="litellm-import")

_OPENAI_COMPATIBLE = frozenset(
    {"openai", "hosted_vllm", "vllm", "lm_studio", "llamafile", "ollama", "ollama_chat", "custom_openai", "openai_like"}
)
"""OpenAI's protocol, or a local server's, at an address that the user chooses; such servers accept a JSON schema."""


class Model(Protocol):
    """Answers prompts."""

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply to a prompt. Raises JudgeError for every failure, and otherwise only CancelledError."""
        ...


class _Clients(Protocol):
    def flush_cache(self) -> None: ...


class _Library(Protocol):
    """The part of litellm that we use."""

    in_memory_llm_clients_cache: _Clients

    def acompletion(self, **params: object) -> Awaitable[object]: ...
    def completion(self, **params: object) -> object: ...
    def close_litellm_async_clients(self) -> Awaitable[None]: ...
    def completion_cost(self, completion_response: object, *, model: str) -> float: ...
    def cost_per_token(self, *, model: str, prompt_tokens: int, completion_tokens: int) -> tuple[float, float]: ...
    def get_llm_provider(self, model: str) -> tuple[str, str, object, object]: ...
    def get_supported_openai_params(self, model: str, custom_llm_provider: str) -> list[str] | None: ...
    def supports_response_schema(self, model: str, custom_llm_provider: str) -> bool: ...
    def supports_reasoning(self, model: str) -> bool: ...


class _Traits(NamedTuple):
    """What must be known of a model before a request."""

    provider: str
    params: frozenset[str]
    form: ReplyForm
    refused: frozenset[str] = frozenset()
    """Parameters that the endpoint does not take, by its own answer to an earlier request."""


class LiteLLM:
    """Models through litellm, with one key and one address. Use it from one event loop, as connections are kept.

    `api_base` None: the provider's own address. `api_key` None: litellm reads the provider's environment variables, but sends
    nothing it finds there to an OpenAI-compatible server at an `api_base`, which may be anybody's. `reply` chooses how the model
    is made to reply with an object; "auto": by JSON schema where litellm knows that the model accepts one and for
    OpenAI-compatible servers at an `api_base`, else by a forced tool call where the provider has tools, else by instruction.
    `bounds` apply to each exchange with the provider; `longest_pause` caps what its Retry-After may demand, in seconds.
    """

    def __init__(
        self,
        *,
        api_base: str | None,
        api_key: str | None,
        reply: Literal["auto", "schema", "tool", "text"],
        redact: Redactor,
        bounds: ExchangeBounds | None = None,
        longest_pause: float = MAX_PAUSE_S,
    ) -> None:
        self._api_base = api_base
        self._api_key = SecretStr(api_key) if api_key else None
        self._reply: Literal["auto", "schema", "tool", "text"] = reply
        self._redact = redact
        self._bounds = bounds or ExchangeBounds()
        self._longest_pause = longest_pause
        self._traits: dict[str, _Traits] = {}
        self._prices: dict[str, tuple[float, float] | None] = {}
        self._thinks: dict[str, bool] = {}

    @property
    def account(self) -> str:
        """Identifies the address and the key without revealing them."""
        key = self._api_key.get_secret_value() if self._api_key else ""
        return hashlib.sha256(f"{self._api_base}\n{key}".encode()).hexdigest()[:16]

    async def complete(self, prompt: Prompt) -> Completion:
        """Return the reply. Raises CallError for every failure."""
        library = await self._prepare_library()
        prompt = await self._add_thinking_room(library, prompt)
        with note_exchanges(
            self._bounds.with_logprobs(prompt.max_tokens) if prompt.logprobs else self._bounds
        ) as notes:
            try:
                reply = await self._ask(library, prompt, notes)
            except CallError as error:
                fault = error
            except Exception as error:  # noqa: BLE001 (whatever litellm raises is a fault of the call)
                fault = explain_failure(error, notes, longest_pause=self._longest_pause)
            else:
                if notes.answers:
                    price = await self._find_price(library, prompt.model)
                    return read_completion(reply, lambda: _look_up_cost(library, reply, prompt.model, price))
                fault = _build_unbounded_error()
        raise fault  # here it has no context, which would quote keys

    async def _ask(self, library: _Library, prompt: Prompt, notes: ExchangeNotes) -> object:
        """Send the request; if the endpoint refuses parameters by name, once more without them. What then works is remembered."""
        traits = self._traits.get(prompt.model) or await self._learn(library, prompt.model)
        while True:
            request = self._build_request(traits, prompt)
            try:
                reply = await library.acompletion(**request)
            except Exception:
                refused = find_refused_params(notes, request) - traits.refused
                if not refused:
                    raise
                traits = traits._replace(refused=traits.refused | refused)
            else:
                if traits.refused:
                    self._traits[prompt.model] = traits
                return reply

    async def worst_usd(self, prompt: Prompt) -> float | None:
        """Return the most that a call can cost, by the local price map and the model's name; None for an unknown price.

        A token of the prompt is at least one byte (English has four, other scripts and base64 less than two), the schema counts
        too, and the reply uses all of `max_tokens` and of its room for thinking.
        """
        library = await self._prepare_library()
        price = await self._find_price(library, prompt.model)
        prompt = await self._add_thinking_room(library, prompt)
        text = "".join(turn.text for turn in prompt.turns) + str(prompt.schema)
        tokens = len(text.encode("utf-8", "replace")) + 16 * (len(prompt.turns) + 1)
        return price and tokens * price[0] + prompt.max_tokens * price[1]

    async def _find_price(self, library: _Library, model: str) -> tuple[float, float] | None:
        if model not in self._prices:
            with note_exchanges(self._bounds):  # as in `_learn`
                self._prices[model] = await asyncio.to_thread(_look_up_price, library, model)
        return self._prices[model]

    async def _add_thinking_room(self, library: _Library, prompt: Prompt) -> Prompt:
        """Extend the prompt by room for the model's thinking, which providers count as tokens of the reply.

        A model without a price is a local one or a deployment under a name of its own: it may think, so it gets room too.
        """
        model = prompt.model
        if model not in self._thinks:
            unknown = not any(await self._find_price(library, model) or ())
            with note_exchanges(self._bounds):  # as in `_learn`
                self._thinks[model] = unknown or await asyncio.to_thread(_look_up_thinking, library, model)
        room = count_thinking_tokens(prompt.reasoning, thinks=self._thinks[model])
        return replace(prompt, max_tokens=prompt.max_tokens + room)

    async def _prepare_library(self) -> _Library:
        if not _is_loaded():
            try:
                await asyncio.get_running_loop().run_in_executor(_LOADER_THREAD, _load)  # three seconds
            except (ImportError, AttributeError) as error:  # AttributeError: a version that `transport` does not know
                reason = f"litellm cannot be used as it is installed ({type(error).__name__})"
                raise CallError("provider_error", reason) from None
        library = _load()
        _redact_logs(self._redact)
        return library

    def _build_request(self, traits: _Traits, prompt: Prompt) -> dict[str, object]:
        reasoning = build_reasoning_params(prompt.reasoning, traits.params - traits.refused)
        form = "text" if reasoning and traits.form == "tool" else traits.form  # a model that thinks cannot be forced
        params: dict[str, object] = {
            "model": prompt.model,
            "messages": [{"role": turn.role, "content": turn.text} for turn in prompt.turns],
            "max_retries": 0,  # and never num_retries, which adds a loop of litellm's own
            "timeout": LITELLM_TIMEOUT_S,
            "drop_params": True,  # for models that take a parameter, but not every value of it
            "api_base": self._api_base,
            "api_key": self._find_key(traits.provider),
            "no-log": True,  # callbacks that others set up are not told of our calls
            **build_reply_params("text" if traits.refused & {"response_format", "tools"} else form, prompt.schema),
            **reasoning,
        }
        limits = [name for name in ("max_tokens", "max_completion_tokens") if name not in traits.refused]
        if limits or any(
            self._prices.get(prompt.model) or ()
        ):  # without a price nobody reckons with the length of a reply
            params[limits[0] if limits else "max_completion_tokens"] = prompt.max_tokens
        if form == "tool":
            params["_skip_mcp_handler"] = True  # which needs a package that we do not install
        takes = traits.params - traits.refused
        if prompt.temperature is not None and "temperature" in takes and not reasoning:
            params["temperature"] = prompt.temperature
        if prompt.logprobs and {"logprobs", "top_logprobs"} <= takes:
            params |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        return params

    def _find_key(self, provider: str) -> str | None:
        if self._api_key:
            return self._api_key.get_secret_value()
        return "none" if self._api_base and provider in _OPENAI_COMPATIBLE else None

    async def _learn(self, library: _Library, model: str) -> _Traits:
        """Find and keep the traits of a model. Raises what litellm raises for a model of an unknown provider."""
        with note_exchanges(self._bounds):  # litellm asks some providers what their models can do, and blocks meanwhile
            self._traits[model] = await asyncio.to_thread(self._find_traits, library, model)
        return self._traits[model]

    def _find_traits(self, library: _Library, model: str) -> _Traits:
        name, provider, _, _ = library.get_llm_provider(model)
        if provider in _UNBOUNDED_PROVIDERS:
            raise _build_unbounded_error()
        takes = frozenset(library.get_supported_openai_params(name, provider) or ())
        form = self._choose_form(library, name, provider, takes) if self._reply == "auto" else self._reply
        return _Traits(provider, takes, form)

    def _choose_form(self, library: _Library, name: str, provider: str, takes: frozenset[str]) -> ReplyForm:
        if library.supports_response_schema(name, provider):
            return "schema"
        if self._api_base and provider in _OPENAI_COMPATIBLE:
            return "schema"
        return "tool" if {"tools", "tool_choice"} <= takes else "text"


async def disconnect() -> None:
    """Close the connections to providers, before the event loop ends; a later call reconnects."""
    if _is_loaded():
        library = _load()
        await library.close_litellm_async_clients()
        library.in_memory_llm_clients_cache.flush_cache()


def _build_unbounded_error() -> CallError:
    return CallError(
        "provider_error", "litellm reaches this provider in a way that cannot be limited, so it is not asked"
    )


def _look_up_price(library: _Library, model: str) -> tuple[float, float] | None:
    """Return the US dollars per token of a prompt, and per token of a reply."""
    try:
        return library.cost_per_token(model=model, prompt_tokens=1, completion_tokens=1)
    except Exception:  # noqa: BLE001 (it raises a bare Exception for an unknown model)
        return None


def _look_up_thinking(library: _Library, model: str) -> bool:
    """Whether the model thinks before it replies, by the local map; False if the map does not know it."""
    try:
        return library.supports_reasoning(model=model)
    except Exception:  # noqa: BLE001 (as in `_look_up_price`)
        return False


def _look_up_cost(library: _Library, reply: object, model: str, price: tuple[float, float] | None) -> float | None:
    """Return the US dollars for a reply; None if no price is known. Avoids a slow new look-up, which may even ask the network."""
    if price is None or not any(price):
        return None if price is None else 0.0
    try:
        return library.completion_cost(reply, model=model)
    except Exception:  # noqa: BLE001 (it raises a bare Exception for an unknown model)
        return None


def _is_loaded() -> bool:
    return _load.cache_info().currsize > 0


@cache
def _load() -> _Library:
    """Import the library, silent and warm. The first call is always made in the one thread of `_LOADER_THREAD`."""
    hush(_CHATTY_LOGGERS)  # before they log anything
    for name in (*_CHATTY_LOGGERS, *_QUOTING_LOGGERS):
        logging.getLogger(name).addFilter(WithholdingFilter(lambda: get_notes() is not None))
    with extend_environ(_IMPORT_ENVIRON), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm  # noqa: PLC0415 (three seconds and 170 MB)

        library = cast("_Library", litellm)
        for name, value in _QUIET_SETTINGS.items():
            setattr(library, name, value)
        hush(_LOGGERS)  # the import has given them handlers
        import_module("service.outbound.transport").install()  # it loads what litellm is built on
        library.in_memory_llm_clients_cache.flush_cache()  # clients made before bypass our transport
        _warm_up(library)
    _withhold_warnings()
    heap.freeze_loaded()
    return library


def _withhold_warnings() -> None:
    """Suppress Python warnings during our calls: pydantic quotes the data that it received."""
    show = warnings.showwarning

    def showwarning(*args: Any, **more: Any) -> None:
        if get_notes() is None:
            show(*args, **more)

    warnings.showwarning = showwarning


def _warm_up(library: _Library) -> None:
    """Import what the library would import in its first call, a second's work on the event loop. Sends nothing."""
    import_module("openai.resources.chat")
    message = {"role": "user", "content": "Hello"}
    library.completion(model="openai/nothing", messages=[message], mock_response="Hello", max_retries=0)
    # The first call of an Anthropic model would fetch this table; read now, it comes from the package.
    import_module("litellm.anthropic_beta_headers_manager").get_unsupported_headers("anthropic")


@cache
def _redact_logs(redact: Redactor) -> None:
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(RedactingFilter(redact))
