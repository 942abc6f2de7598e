"""The batch endpoints of providers: submit lines under a label of ours, find them by it, read what came back, cancel them.

A submission whose answer was lost may have been taken. `find` tells: it looks for the label in what the provider lists.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any

from pydantic import AliasChoices, AliasPath, BaseModel, Field, TypeAdapter, ValidationError

from service.asking.model import LiteLLM
from service.asking.provider_batches import is_batchable
from service.asking.provider_batches.wire import Endpoint, write_request
from service.core.judging.prompts import Prompt, Turn
from service.store.jobs.provider_batches import ProviderBatch

LABEL = "callgrade"
"""Name of the member of a batch's metadata that holds our label."""

SKEW_S = 600.0
"""Seconds by which a provider's clock may differ from the database's."""

MAX_PAGES = 10_000

ENDED = frozenset({"completed", "failed", "expired", "cancelled", "ended"})
"""States of batches that have ended, in whatever way, in the words of both providers."""

Id = Annotated[str, Field(max_length=256, pattern=r"^[A-Za-z0-9][A-Za-z0-9_./-]*$")]

Lines = Mapping[str, Mapping[str, Any]]
"""The body of each question's request, by its custom id."""

Answers = Mapping[str, bytes]
"""The bodies of the usable answers, by custom id."""


class UnsureError(Exception):
    """Whether a submission was taken will show when another batch has ended."""


class _Entry(BaseModel):
    """A batch or a file, as either provider describes it."""

    id: Id
    status: str = Field("", validation_alias=AliasChoices("processing_status", "status"))
    label: str = Field("", validation_alias=AliasChoices("filename", AliasPath("metadata", LABEL)))
    created_at: datetime | None = None
    output_file_id: Id | None = None
    request_counts: dict[str, int] = Field(default_factory=dict[str, int])


class _Result(BaseModel):
    """The result of one line, as either provider words it; `body` is None unless it succeeded."""

    custom_id: str = ""
    status: int = Field(200, validation_alias=AliasPath("response", "status_code"))
    body: dict[str, Any] | None = Field(
        None, validation_alias=AliasChoices(AliasPath("response", "body"), AliasPath("result", "message"))
    )


class _Page(BaseModel):
    data: list[_Entry] = Field(default_factory=list[_Entry])
    has_more: bool = False


class Dialect:
    """The batch endpoint of OpenAI, and of servers that speak its language: a file of lines, and a batch of the file."""

    path = "/batches"
    after = "after"

    def __init__(self, at: Endpoint) -> None:
        self._at = at

    async def submit(self, own: ProviderBatch, lines: Lines, *, again: bool) -> str:
        """Submit lines, and return the provider's id. `again`: a file of them may be there already."""
        name, url = f"{LABEL}-{own.label}.jsonl", "/v1/chat/completions"
        file = await self._search("/files", name, purpose="batch") if again else None
        if file is None:
            rows = [{"custom_id": key, "method": "POST", "url": url, "body": body} for key, body in lines.items()]
            text = b"".join([_dump(row) + b"\n" for row in rows])
            file = (await self._at.upload(_Entry, "/files", name, text)).id
        batch = {"input_file_id": file, "endpoint": url, "completion_window": "24h", "metadata": {LABEL: own.label}}
        return (await self._at.post(_Entry, self.path, batch)).id

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
        more: Mapping[str, str] = {}
        for _ in range(MAX_PAGES):
            page = await self._at.get(_Page, path, limit="100", **params, **more)
            for one in page.data:
                if one.created_at is not None and one.created_at.timestamp() < since - SKEW_S:
                    return
                yield one
            if not (page.data and page.has_more):
                return
            more = {self.after: page.data[-1].id}

    async def read(self, batch: str) -> Answers | None:
        """Return the answers of a batch that has ended, in whatever way; None while it runs."""
        found = await self._at.get(_Entry, f"{self.path}/{batch}")
        if found.status not in ENDED:
            return None
        results = await self._read_results(found)
        return {one.custom_id: _dump(one.body) for one in results if one.body is not None and one.status == 200}

    async def _read_results(self, batch: _Entry) -> Sequence[_Result]:
        file = batch.output_file_id
        return [] if file is None else _parse_lines(await self._at.download(f"/files/{file}/content"))

    async def cancel(self, batch: str) -> None:
        """Stop a batch. What it has answered can be read once it has ended."""
        await self._at.post(BaseModel, f"{self.path}/{batch}/cancel")


class Anthropic(Dialect):
    """Anthropic's message batches. They carry no metadata: the label begins each custom id, which only results show."""

    path = "/messages/batches"
    after = "after_id"

    async def submit(self, own: ProviderBatch, lines: Lines, *, again: bool) -> str:  # noqa: ARG002
        """Make a batch."""
        rows = [{"custom_id": name, "params": body} for name, body in lines.items()]
        return (await self._at.post(_Entry, self.path, {"requests": rows})).id

    async def find(self, own: ProviderBatch, taken: Collection[str]) -> str | None:
        """Look at the results of each batch of that time and size; of one that runs, nobody can tell whose it is."""
        unsure = False
        async for one in self._iterate(self.path, since=own.created_at):
            if one.id in taken or sum(one.request_counts.values()) != own.questions:
                continue
            if one.status not in ENDED:
                unsure = True
            elif any(result.custom_id.startswith(own.label) for result in await self._read_results(one)):
                return one.id
        if unsure:
            raise UnsureError
        return None

    async def _read_results(self, batch: _Entry) -> Sequence[_Result]:
        return _parse_lines(await self._at.download(f"{self.path}/{batch.id}/results"))


_DIALECTS = {"/chat/completions": Dialect, "/messages": Anthropic}
"""By the end of the address of a usual request, which follows the root of the batch endpoint."""


async def open_batches(models: LiteLLM, model: str) -> Dialect | None:
    """Find the batch endpoint of a model's provider; None if it has none that we know. Raises CallError."""
    if not is_batchable(model):
        return None
    usual = await write_request(models, Prompt(model, (Turn("user", "?"),), {}, max_tokens=1))
    address = str(usual.url.copy_with(query=None))
    for path, dialect in _DIALECTS.items():
        if address.endswith(path):
            return dialect(Endpoint(models, address.removesuffix(path), usual))
    return None


_RESULT = TypeAdapter(_Result)


def _parse_lines(text: bytes) -> list[_Result]:
    """Parse JSON Lines; one that nobody can read is no result."""
    found: list[_Result] = []
    for line in text.splitlines():
        with suppress(ValidationError):
            found.append(_RESULT.validate_json(line))
    return found


def _dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value).encode()
