"""The batch endpoints of providers: submit lines under a label of ours, find them by it, read what came back, cancel them.

A submission whose answer was lost may have been taken. `find` tells: it looks for the label in what the provider lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, AliasChoices, AliasPath, BaseModel, Field, TypeAdapter, ValidationError

from service.asking.provider_batches import is_batchable
from service.asking.provider_batches.wire import Endpoint, Wire
from service.core.judging.prompts import Prompt, Turn
from service.store.jobs.provider_batches import ProviderBatch

LABEL = "callgrade"
"""Name of the member of a batch's metadata that holds our label."""

SKEW_S = 600.0
"""Seconds by which a provider's clock may differ from the database's."""

PAGE_SIZE = "100"

ENDED = frozenset(
    [
        "completed",
        "failed",
        "expired",
        "cancelled",
        "success",
        "timeout_exceeded",
        "ended",
        "succeeded",
        "partially_succeeded",
    ]
)
"""States of batches that have ended, in whatever way, in the words of all providers."""

Id = Annotated[
    str,
    Field(max_length=256, pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]*$"),
    AfterValidator(lambda name: name.removeprefix("batches/")),
]

Lines = Mapping[str, Mapping[str, Any]]
"""The body of each question's request, by its custom id."""

Answers = Mapping[str, bytes]
"""The bodies of the usable answers, by custom id."""


class UnsureError(Exception):
    """Whether a submission was taken will show when another batch has ended."""


class _Entry(BaseModel):
    """A batch or a file, as any of the providers describes it."""

    id: Id = Field(validation_alias=AliasChoices("id", "name"))
    status: str = Field(
        "", validation_alias=AliasChoices("processing_status", AliasPath("metadata", "state"), "status")
    )
    label: str = Field(
        "",
        validation_alias=AliasChoices("filename", AliasPath("metadata", LABEL), AliasPath("metadata", "displayName")),
    )
    created_at: datetime | None = Field(
        None, validation_alias=AliasChoices("created_at", AliasPath("metadata", "createTime"))
    )
    output: Id | None = Field(None, validation_alias=AliasChoices("output_file_id", "output_file"))
    counts: dict[str, int] = Field(default_factory=dict[str, int], validation_alias="request_counts")
    inline: list[_Result] = Field(
        default_factory=list["_Result"], validation_alias=AliasPath("response", "inlinedResponses", "inlinedResponses")
    )

    @property
    def has_ended(self) -> bool:
        return self.status.removeprefix("JOB_STATE_").removeprefix("BATCH_STATE_").lower() in ENDED

    def is_older(self, than: float) -> bool:
        return self.created_at is not None and self.created_at.timestamp() < than - SKEW_S


class _Result(BaseModel):
    """The result of one line, as any of the providers words it; `body` is None unless it succeeded."""

    name: str = Field("", validation_alias=AliasChoices("custom_id", AliasPath("metadata", "key")))
    status: int = Field(200, validation_alias=AliasPath("response", "status_code"))
    body: dict[str, Any] | None = Field(
        None, validation_alias=AliasChoices(AliasPath("response", "body"), AliasPath("result", "message"), "response")
    )


class _Page(BaseModel):
    entries: list[_Entry] = Field(default_factory=list[_Entry], validation_alias=AliasChoices("data", "operations"))
    has_more: bool = False
    token: str = Field("", validation_alias="nextPageToken")


class Dialect:
    """One provider's batch endpoint. What is here is OpenAI's, which others have taken over."""

    path = "/batches"
    line_url = "/v1/chat/completions"
    cancelling = "/cancel"
    paging: ClassVar[Mapping[str, str]] = {"limit": PAGE_SIZE}

    def __init__(self, at: Endpoint) -> None:
        self._at = at

    async def submit(self, own: ProviderBatch, lines: Lines, *, again: bool) -> str:
        """Submit lines, and return the provider's id. `again`: a file of them may be there already."""
        name = f"{LABEL}-{own.label}.jsonl"
        file = await self._search("/files", name, purpose="batch") if again else None
        if file is None:
            text = b"".join([_dump(self._build_line(key, body)) + b"\n" for key, body in lines.items()])
            file = (await self._at.upload(_Entry, "/files", name, text)).id
        batch = self._build_batch(file, own.model) | {"metadata": {LABEL: own.label}}
        return (await self._at.post(_Entry, self.path, batch)).id

    def _build_line(self, name: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"custom_id": name, "method": "POST", "url": self.line_url, "body": body}

    def _build_batch(self, file: str, model: str) -> dict[str, Any]:  # noqa: ARG002
        return {"input_file_id": file, "endpoint": self.line_url, "completion_window": "24h"}

    async def find(self, own: ProviderBatch, taken: Collection[str]) -> str | None:  # noqa: ARG002
        """Return the id of an earlier submission; None if it was never taken. `taken`: ids of our others. Raises UnsureError."""
        return await self._search(self.path, own.label, since=own.created_at)

    async def _search(self, path: str, label: str, *, since: float = 0.0, **params: str) -> str | None:
        async for one in self._iterate(path, since=since, **params):
            if one.label == label:
                return one.id
        return None

    async def _iterate(self, path: str, *, since: float, **params: str) -> AsyncIterator[_Entry]:
        """Yield what is listed at a path, the newest first, until it is older than `since`."""
        more: Mapping[str, str] | None = {}
        for number in range(10_000):
            page = await self._at.get(_Page, path, **params, **self.paging, **more)
            for one in page.entries:
                if one.is_older(since):
                    return
                yield one
            more = self._find_next(page, number)
            if not page.entries or more is None:
                return

    def _find_next(self, page: _Page, number: int) -> Mapping[str, str] | None:  # noqa: ARG002
        return {"after": page.entries[-1].id} if page.has_more and page.entries else None

    async def read(self, batch: str) -> Answers | None:
        """Return the answers of a batch that has ended, in whatever way; None while it runs."""
        found = await self._at.get(_Entry, f"{self.path}/{batch}")
        if not found.has_ended:
            return None
        results = await self._read_results(found)
        return {one.name: _dump(one.body) for one in results if one.body is not None and one.status == 200}

    async def _read_results(self, batch: _Entry) -> Sequence[_Result]:
        return [] if batch.output is None else _parse_lines(await self._at.download(f"/files/{batch.output}/content"))

    async def cancel(self, batch: str) -> None:
        """Stop a batch. What it has answered can be read once it has ended."""
        await self._at.post(BaseModel, f"{self.path}/{batch}{self.cancelling}")


class Azure(Dialect):
    """Azure's deployments: OpenAI's endpoint below another root."""

    line_url = "/chat/completions"


class Mistral(Dialect):
    """Mistral's files and jobs: the job names the model."""

    path = "/batch/jobs"
    paging: ClassVar[Mapping[str, str]] = {"page_size": PAGE_SIZE}

    def _build_line(self, name: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"custom_id": name, "body": {key: value for key, value in body.items() if key != "model"}}

    def _build_batch(self, file: str, model: str) -> dict[str, Any]:
        return {"input_files": [file], "model": _name_model(model), "endpoint": self.line_url, "timeout_hours": 24}

    def _find_next(self, page: _Page, number: int) -> Mapping[str, str] | None:
        return {"page": str(number + 1)} if len(page.entries) >= int(PAGE_SIZE) else None


class Anthropic(Dialect):
    """Anthropic's message batches. They carry no metadata: the label begins each custom id, which only results show."""

    path = "/messages/batches"

    async def submit(self, own: ProviderBatch, lines: Lines, *, again: bool) -> str:  # noqa: ARG002
        """Make a batch."""
        rows = [{"custom_id": name, "params": body} for name, body in lines.items()]
        return (await self._at.post(_Entry, self.path, {"requests": rows})).id

    async def find(self, own: ProviderBatch, taken: Collection[str]) -> str | None:
        """Look at the results of each batch of that time and size; of one that runs, nobody can tell whose it is."""
        unsure = False
        async for one in self._iterate(self.path, since=own.created_at):
            if one.id in taken or sum(one.counts.values()) != own.questions:
                continue
            if not one.has_ended:
                unsure = True
            elif any(result.name.startswith(own.label) for result in await self._read_results(one)):
                return one.id
        if unsure:
            raise UnsureError
        return None

    def _find_next(self, page: _Page, number: int) -> Mapping[str, str] | None:  # noqa: ARG002
        return {"after_id": page.entries[-1].id} if page.has_more and page.entries else None

    async def _read_results(self, batch: _Entry) -> Sequence[_Result]:
        return _parse_lines(await self._at.download(f"{self.path}/{batch.id}/results"))


class Gemini(Dialect):
    """Gemini's batches, with requests and results inline."""

    cancelling = ":cancel"
    paging: ClassVar[Mapping[str, str]] = {"pageSize": PAGE_SIZE}

    async def submit(self, own: ProviderBatch, lines: Lines, *, again: bool) -> str:  # noqa: ARG002
        """Make a batch whose name for display is the label."""
        rows = [{"request": body, "metadata": {"key": name}} for name, body in lines.items()]
        batch = {"display_name": own.label, "input_config": {"requests": {"requests": rows}}}
        path = f"/models/{_name_model(own.model)}:batchGenerateContent"
        return (await self._at.post(_Entry, path, {"batch": batch})).id

    def _find_next(self, page: _Page, number: int) -> Mapping[str, str] | None:  # noqa: ARG002
        return {"pageToken": page.token} if page.token else None

    async def _read_results(self, batch: _Entry) -> Sequence[_Result]:
        return batch.inline


_PLACES: tuple[tuple[str, str, type[Dialect]], ...] = (
    (r"(.*)/openai/deployments/[^/]+/chat/completions", "/openai", Azure),
    (r"(.*)/chat/completions", "", Dialect),
    (r"(.*)/messages", "", Anthropic),
    (r"(.*)/models/[^/]+:generateContent", "", Gemini),
)
"""By the address of a usual request: what follows the root of the batch endpoint, and its dialect."""


async def open_batches(wire: Wire, model: str) -> Dialect | None:
    """Find the batch endpoint of a model's provider; None if it has none that we know. Raises CallError."""
    if not is_batchable(model):
        return None
    usual = await wire.build_request(Prompt(model, (Turn("user", "?"),), {}, max_tokens=1))
    for pattern, path, dialect in _PLACES:
        if (found := re.fullmatch(pattern, str(usual.url.copy_with(query=None)))) is not None:
            chosen = Mistral if model.startswith("mistral/") else dialect
            return chosen(Endpoint(wire.model, found[1] + path, usual))
    return None


_RESULT = TypeAdapter(_Result)


def _parse_lines(text: bytes) -> list[_Result]:
    """Parse JSON Lines; one that nobody can read is no result."""
    found: list[_Result] = []
    for line in text.splitlines():
        with suppress(ValidationError):
            found.append(_RESULT.validate_json(line))
    return found


def _name_model(model: str) -> str:
    return model.rpartition("/")[2]


def _dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode()
