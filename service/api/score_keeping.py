"""Interactive scores that are kept, where the request or the settings say so."""

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
    """Keeps scores; without a store there is nowhere to."""

    def __init__(self, scores: KeptScores | None, *, always: bool = False) -> None:
        """`always`: also where a request does not say."""
        self._scores = scores
        self._always = always and scores is not None
        self._threads = Threads(4, name="kept")

    def is_wanted(self, store: bool | None) -> bool:  # noqa: FBT001 (as the request says it)
        """Whether a score is kept; InputError where that is asked for and there is no store."""
        if store and self._scores is None:
            raise InputError.at("/store", "a score is kept in a database, and none is open here; expected false")
        return self._always if store is None else store

    def wants(self, request: ScoreRequest) -> bool:
        """Whether the score of a request is kept."""
        return self.is_wanted(request.store)

    async def keep(self, request: Request, draft: ScoreDraft | None, sent: bytes) -> dict[str, str]:
        """The header that names the score; none where it is not kept. `sent`: the request's JSON."""
        scores, tenant = self._scores, find_caller(request).tenant
        if draft is None or scores is None:
            return {}
        whole = replace(draft, request=sent)
        try:
            name = await self._threads.run(
                find_payer(request.scope),
                lambda: insist(lambda: scores.keep(tenant, whole), give_up=DATABASE_PATIENCE_S),
            )
        except BusyError as error:  # what was scored is worth more than that it is kept
            LOG.warning("a score is not kept", extra={"fields": {"why": str(error)}})
            return {}
        return {"x-callgrade-score-id": name}
