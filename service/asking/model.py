"""The one place that speaks to models, through litellm, which is imported when the first call is made.

litellm is kept to what it does well, the dialects of the providers: it retries nothing, caches nothing, reports to nobody
and fetches nothing at import. What it sends and gets passes `service.outbound.transport`, what it returns is read in
`service.asking.replies`, what it raises in `service.asking.failures`.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import warnings
from collections.abc import Awaitable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from functools import cache
from importlib import import_module
from typing import Any, Literal, NamedTuple, Protocol, cast

from pydantic import JsonValue, SecretStr

from service import heap
from service.asking.failures import LONGEST_PAUSE, explain_failure
from service.asking.faults import CallError
from service.asking.reasoning import build_reasoning_params, count_thinking_tokens
from service.asking.replies import ReplyForm, build_reply_params, read_completion
from service.core.judging.prompts import Completion, Prompt
from service.logs.quiet import RedactingFilter, WithholdingFilter, extend_environ, hush
from service.logs.redaction import Redactor
from service.outbound.exchanges import ExchangeBounds, get_notes, note_exchanges

BACKSTOP = 600.0
"""Seconds after which litellm gives up by itself. Not a deadline: bytes that drip in keep it waiting. The caller has one."""

TOP_LOGPROBS = 20
"""Alternatives asked for in the place of each token; the most that OpenAI takes."""

_AT_IMPORT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # prices come from the package, not from the network
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS": "True",  # likewise what Anthropic's models take
    "LITELLM_MODE": "PRODUCTION",  # a .env file that lies about is not loaded into our environment
}
_QUIET: Mapping[str, JsonValue] = {
    "telemetry": False,
    "suppress_debug_info": True,  # it prints advice
    "turn_off_message_logging": True,
}
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy")
_TALKATIVE = (*_LOGGERS, "openai", "httpx", "httpcore", "aiohttp")  # they log prompts and URLs
_UNBOUNDED = frozenset({"aiohttp_openai"})
"""Providers to which litellm goes by a way that `service.outbound.transport` does not see."""
_QUOTING = ("aiohttp.client", "aiohttp.internal", "asyncio")
"""Those that warn in the words of a provider, and are no parents of theirs."""
_LOADING = ThreadPoolExecutor(1, thread_name_prefix="litellm-import")

_COMPATIBLE = frozenset(
    {"openai", "hosted_vllm", "vllm", "lm_studio", "llamafile", "ollama", "ollama_chat", "custom_openai", "openai_like"}
)
"""Providers that are OpenAI's protocol, or a local server's, at an address of one's own; such servers take a JSON schema."""


class Model(Protocol):
    """What answers prompts."""

    async def complete(self, prompt: Prompt) -> Completion:
        """The reply to a prompt. Raises JudgeError for whatever went wrong, and nothing else but CancelledError."""
        ...


class _Clients(Protocol):
    def flush_cache(self) -> None: ...


class _Library(Protocol):
    """What we use of litellm."""

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
    """What is to be known of a model before a request."""

    provider: str
    takes: frozenset[str]
    form: ReplyForm


class LiteLLM:
    """Models through litellm, with one key and at one address. Use it from one event loop: connections are kept.

    `api_base` None: the provider's own address. `api_key` None: litellm looks in the provider's variables, but sends
    nothing found there to an OpenAI-compatible server at an `api_base`, which may be anybody's. `reply` says how the model
    is made to reply with an object; "auto": by JSON schema where litellm knows that the model takes one and for
    OpenAI-compatible servers at an `api_base`, else by a forced tool call where the provider has tools, else in words.
    `bounds` hold for each exchange with the provider; `longest_pause` is the most that a Retry-After of its can say, in
    seconds.
    """

    def __init__(
        self,
        *,
        api_base: str | None,
        api_key: str | None,
        reply: Literal["auto", "schema", "tool", "text"],
        redact: Redactor,
        bounds: ExchangeBounds | None = None,
        longest_pause: float = LONGEST_PAUSE,
    ) -> None:
        self._api_base = api_base
        self._api_key = SecretStr(api_key) if api_key else None
        self._reply: Literal["auto", "schema", "tool", "text"] = reply
        self._redact = redact
        self._bounds = bounds or ExchangeBounds()
        self._longest_pause = longest_pause
        self._known: dict[str, _Traits] = {}
        self._prices: dict[str, tuple[float, float] | None] = {}
        self._thinkers: dict[str, bool] = {}

    @property
    def account(self) -> str:
        """Stands for the address and the key, without giving them away."""
        key = self._api_key.get_secret_value() if self._api_key else ""
        return hashlib.sha256(f"{self._api_base}\n{key}".encode()).hexdigest()[:16]

    async def complete(self, prompt: Prompt) -> Completion:
        """The reply. Raises CallError, whatever went wrong."""
        library = await self._prepare_library()
        prompt = await self._add_thinking_room(library, prompt)
        with note_exchanges(
            self._bounds.with_logprobs(prompt.max_tokens) if prompt.logprobs else self._bounds
        ) as found:
            try:
                traits = self._known.get(prompt.model) or await self._learn(library, prompt.model)
                with _suppress_callbacks():
                    reply = await library.acompletion(**self._build_request(traits, prompt))
            except CallError as error:
                fault = error
            except Exception as error:  # noqa: BLE001 (whatever comes out of litellm is a fault of the call)
                fault = explain_failure(error, found, longest_pause=self._longest_pause)
            else:
                if found.answers:
                    price = await self._find_price(library, prompt.model)
                    return read_completion(reply, lambda: _look_up_cost(library, reply, prompt.model, price))
                fault = _build_unbounded_error()
        raise fault  # here, where it has no context: that one quotes keys

    async def worst_usd(self, prompt: Prompt) -> float | None:
        """The most that a call can cost, by the local price map and the model's name; None where it knows no price.

        A token of the prompt is at least one byte (English has four, other scripts and base64 less than two), the schema
        counts in, the reply uses all of `max_tokens`, and all that it may think in.
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
        """The prompt with room for what the model thinks, which providers count among the tokens of the reply."""
        model = prompt.model
        if model not in self._thinkers:
            with note_exchanges(self._bounds):  # as in `_learn`
                self._thinkers[model] = await asyncio.to_thread(_look_up_thinking, library, model)
        room = count_thinking_tokens(prompt.reasoning, thinks=self._thinkers[model])
        return replace(prompt, max_tokens=prompt.max_tokens + room)

    async def _prepare_library(self) -> _Library:
        if not _is_loaded():
            try:
                await asyncio.get_running_loop().run_in_executor(_LOADING, _load)  # three seconds
            except (ImportError, AttributeError) as error:  # the latter: it is no longer built as `transport` knows it
                reason = f"litellm cannot be used as it is installed ({type(error).__name__})"
                raise CallError("provider_error", reason) from None
        library = _load()
        _redact_logs(self._redact)
        return library

    def _build_request(self, traits: _Traits, prompt: Prompt) -> dict[str, object]:
        reasoning = build_reasoning_params(prompt.reasoning, traits.takes)
        form = "text" if reasoning and traits.form == "tool" else traits.form  # a model that thinks cannot be forced
        params: dict[str, object] = {
            "model": prompt.model,
            "messages": [{"role": turn.role, "content": turn.text} for turn in prompt.turns],
            "max_tokens": prompt.max_tokens,
            "max_retries": 0,  # and never num_retries, which adds a loop of litellm's own
            "timeout": BACKSTOP,
            "drop_params": True,  # for models that take a parameter, but not every value of it
            "api_base": self._api_base,
            "api_key": self._find_key(traits.provider),
            **build_reply_params(form, prompt.schema),
            **reasoning,
        }
        if form == "tool":
            params["_skip_mcp_handler"] = True  # which needs a package that we do not install
        if prompt.temperature is not None and "temperature" in traits.takes and not reasoning:
            params["temperature"] = prompt.temperature
        if prompt.logprobs and {"logprobs", "top_logprobs"} <= traits.takes:
            params |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        return params

    def _find_key(self, provider: str) -> str | None:
        if self._api_key:
            return self._api_key.get_secret_value()
        return "none" if self._api_base and provider in _COMPATIBLE else None

    async def _learn(self, library: _Library, model: str) -> _Traits:
        """The traits of a model, which are kept. Raises what litellm raises for a model of no provider it knows."""
        with note_exchanges(
            self._bounds
        ):  # some providers are asked what their models can do, and litellm waits for it
            self._known[model] = await asyncio.to_thread(self._find_traits, library, model)
        return self._known[model]

    def _find_traits(self, library: _Library, model: str) -> _Traits:
        name, provider, _, _ = library.get_llm_provider(model)
        if provider in _UNBOUNDED:
            raise _build_unbounded_error()
        takes = frozenset(library.get_supported_openai_params(name, provider) or ())
        form = self._choose_form(library, name, provider, takes) if self._reply == "auto" else self._reply
        return _Traits(provider, takes, form)

    def _choose_form(self, library: _Library, name: str, provider: str, takes: frozenset[str]) -> ReplyForm:
        if library.supports_response_schema(name, provider):
            return "schema"
        if self._api_base and provider in _COMPATIBLE:
            return "schema"
        return "tool" if {"tools", "tool_choice"} <= takes else "text"


async def disconnect() -> None:
    """Closes the connections to providers. For the end of the event loop; a later call connects anew."""
    if _is_loaded():
        library = _load()
        await library.close_litellm_async_clients()
        library.in_memory_llm_clients_cache.flush_cache()


def _build_unbounded_error() -> CallError:
    return CallError("provider_error", "litellm goes to this provider by a way that has no bounds, so it is not asked")


def _look_up_price(library: _Library, model: str) -> tuple[float, float] | None:
    """US dollars for a token of a prompt and for one of a reply."""
    try:
        return library.cost_per_token(model=model, prompt_tokens=1, completion_tokens=1)
    except Exception:  # noqa: BLE001 (it raises a bare Exception for a model it does not know)
        return None


def _look_up_thinking(library: _Library, model: str) -> bool:
    """Whether the model thinks before it replies, by the local map; not for one that this does not know."""
    try:
        return library.supports_reasoning(model=model)
    except Exception:  # noqa: BLE001 (as in `_look_up_price`)
        return False


def _look_up_cost(library: _Library, reply: object, model: str, price: tuple[float, float] | None) -> float | None:
    """US dollars for a reply; None where no price is known. Looking it up anew takes longer than all else, and may ask."""
    if price is None or not any(price):
        return None if price is None else 0.0
    try:
        return library.completion_cost(reply, model=model)
    except Exception:  # noqa: BLE001 (it raises a bare Exception for a model it does not know)
        return None


def _is_loaded() -> bool:
    return _load.cache_info().currsize > 0


@cache
def _load() -> _Library:
    """The library, silent and warm. Only ever first called in the one thread of `_LOADING`."""
    hush(_TALKATIVE)  # before it can speak
    for name in (*_TALKATIVE, *_QUOTING):
        logging.getLogger(name).addFilter(WithholdingFilter(lambda: get_notes() is not None))
    with extend_environ(_AT_IMPORT), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import litellm  # noqa: PLC0415 (three seconds and 170 MB)

        library = cast("_Library", litellm)
        for name, value in _QUIET.items():
            setattr(library, name, value)
        hush(_LOGGERS)  # the import has given them handlers
        import_module("service.outbound.transport").install()  # it loads what litellm is built on
        library.in_memory_llm_clients_cache.flush_cache()  # clients that were made before go another way
        _warm_up(library)
    _withhold_warnings()
    heap.freeze_loaded()
    return library


def _withhold_warnings() -> None:
    """Keeps to itself what Python is to warn of while a call of ours runs: pydantic quotes what came."""
    show = warnings.showwarning

    def showwarning(*args: Any, **more: Any) -> None:
        if get_notes() is None:
            show(*args, **more)

    warnings.showwarning = showwarning


def _warm_up(library: _Library) -> None:
    """Imports what the library would import in the first call, a second's work on the event loop. Nothing is sent."""
    import_module("openai.resources.chat")
    message = {"role": "user", "content": "Hello"}
    library.completion(model="openai/nothing", messages=[message], mock_response="Hello", max_retries=0)
    # A table that the first call of an Anthropic model would fetch; read now, it comes from the package.
    import_module("litellm.anthropic_beta_headers_manager").get_unsupported_headers("anthropic")


@contextmanager
def _suppress_callbacks() -> Generator[None]:
    """What is called within is litellm's own business, as it were: no callback is told of its success, which saves a tenth."""
    variable = _find_internal_flag()
    if variable is None:
        yield
        return
    token = variable.set(True)
    try:
        yield
    finally:
        variable.reset(token)


@cache
def _find_internal_flag() -> ContextVar[bool] | None:
    """The variable by which litellm knows its own calls, which is private; None where it is no more."""
    with suppress(ImportError, AttributeError):
        return cast("ContextVar[bool]", import_module("litellm._internal_context").is_internal_call)
    return None


@cache
def _redact_logs(redact: Redactor) -> None:
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(RedactingFilter(redact))
