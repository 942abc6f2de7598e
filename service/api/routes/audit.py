"""The audit log over HTTP, for keys with the scope admin: it tells of every tenant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from service.api.access import find_payer
from service.api.fairness.threads import Threads
from service.api.openapi import JSON, gives
from service.api.queries import QueryParameter, accept_choice, accept_whole, describe_parameters, read_query
from service.api.routes.scoring import build_route
from service.jobs.admission import PATIENCE
from service.store.audit import ACTS, AUDIT_LOG, Audit
from service.store.database import insist

TYPES: Mapping[str, tuple[JsonSchemaMode, TypeAdapter[Any]]] = {"AuditLog": ("serialization", AUDIT_LOG)}

LISTED: Mapping[str, QueryParameter] = {
    "limit": accept_whole("Entries in the answer at most; absent: 100", 1, 1_000),
    "after": accept_whole("The id of an entry; those older than it are given", 1, 2**31 - 1),
    "act": accept_choice("What was done in the entries that are given", ACTS),
}

NO_STORE = "the audit log needs a database, and none is open here"


class AuditRoutes:
    """The handler over one store; where there is none it answers 503."""

    def __init__(self, audit: Audit | None) -> None:
        self._audit = audit
        self._threads = Threads(1, name="audit")

    def all(self) -> list[BaseRoute]:
        """The route, with what it takes and gives."""
        given = gives("AuditLog", 422, 503)
        return [
            build_route(
                "GET", "/v1/audit", "read_audit", self.read_audit, given, {"parameters": describe_parameters(LISTED)}
            )
        ]

    async def read_audit(self, request: Request) -> Response:
        """Read the audit log, newest first: keys, batches and calibrations that somebody changed, and files that changed."""
        audit = self._audit
        if audit is None:
            raise HTTPException(503, NO_STORE)
        asked = cast("dict[str, Any]", {"limit": 100} | read_query(request.query_params, LISTED))
        found = await self._threads.run(
            find_payer(request.scope), lambda: insist(lambda: audit.page(**asked), give_up=PATIENCE)
        )
        return Response(AUDIT_LOG.dump_json(found), media_type=JSON)
