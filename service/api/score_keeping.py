"""Store the scores of /v1/score, if the request or the settings ask for it."""

from __future__ import annotations

import logging
from dataclasses import replace

from starlette.requests import Request

from service.api.access import find_caller, find_payer
from service.api.fairness.threads import Threads
from service.errors import BusyError, InputError
from service.jobs.admission import DATABASE_PATIENCE_S
from service.request import ScoreRequest
from service.store.database import insist
from service.store.kept_scores import KeptScores
from service.store.labelling.drafts import ScoreDraft

LOG = logging.getLogger("callgrade.api")


class ScoreKeeper:
    """Stores scores, if there is a store."""

    def __init__(self, scores: KeptScores | None, *, always: bool = False) -> None:
        """`always`: store a score also if its request does not say."""
        self._scores = scores
        self._always = always and scores is not None
        self._threads = Threads(4, name="kept")

    def should_keep(self, store: bool | None) -> bool:  # noqa: FBT001 (the request's own field)
        """Whether to keep a score, by the request's `store`; InputError if it asks for that and there is no store."""
        if store and self._scores is None:
            raise InputError.at("/store", "keeping a score needs a database, and none is open here; expected false")
        return self._always if store is None else store

    def wants(self, request: ScoreRequest) -> bool:
        """Whether to keep the score of a request."""
        return self.should_keep(request.store)

    async def keep(self, request: Request, draft: ScoreDraft | None, sent: bytes) -> dict[str, str]:
        """Store a score and return the header that names it; no header if it is not stored. `sent`: the request's JSON."""
        scores, tenant = self._scores, find_caller(request).tenant
        if draft is None or scores is None:
            return {}
        complete = replace(draft, request=sent)
        try:
            name = await self._threads.run(
                find_payer(request.scope),
                lambda: insist(lambda: scores.keep(tenant, complete), give_up=DATABASE_PATIENCE_S),
            )
        except BusyError as error:  # returning the report matters more than keeping it
            LOG.warning("the score could not be stored", extra={"fields": {"why": str(error)}})
            return {}
        return {"x-callgrade-score-id": name}
