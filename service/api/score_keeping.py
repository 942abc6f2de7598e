"""Store the scores of /v1/score, if the request or the settings ask for it."""

from __future__ import annotations

import logging
from dataclasses import replace

from starlette.requests import Request

from service.api.access import find_tenant
from service.api.store_access import StoreAccess
from service.errors import BusyError, InputError
from service.store.kept_scores import KeptScores
from service.store.labelling.drafts import ScoreDraft

LOG = logging.getLogger("callgrade.api")


class ScoreKeeper(StoreAccess[KeptScores]):
    """Stores scores, if there is a store."""

    def __init__(self, scores: KeptScores | None, *, always: bool = False) -> None:
        """`always`: store a score also if its request does not say."""
        super().__init__(scores, "keeping a score needs")
        self._always = always and scores is not None

    def should_keep(self, store: bool | None) -> bool:  # noqa: FBT001 (the request's own field)
        """Whether to keep a score, by the request's `store`; InputError if it asks for that and there is no store."""
        if store and self._store is None:
            raise InputError.at("/store", "keeping a score needs a database, and none is open here; expected false")
        return self._always if store is None else store

    async def keep(self, request: Request, draft: ScoreDraft | None, sent: bytes) -> dict[str, str]:
        """Store a score and return the header that names it; no header if it is not stored. `sent`: the request's JSON."""
        if draft is None:
            return {}
        scores, tenant, complete = self.find_store(), find_tenant(request), replace(draft, request=sent)
        try:
            return {"x-callgrade-score-id": await self.run(request, lambda: scores.keep(tenant, complete))}
        except BusyError as error:  # returning the report matters more than keeping it
            LOG.warning("the score could not be stored", extra={"fields": {"why": str(error)}})
            return {}
