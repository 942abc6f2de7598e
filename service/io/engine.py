"""Scoring a request from end to end: the one path that HTTP, command line and library share."""

from __future__ import annotations

from functools import cache

from pydantic import JsonValue, TypeAdapter

from service.core.plan import Plan
from service.core.report import Report, conclude
from service.errors import InputError
from service.io.shelf import Shelf
from service.request import ScoreRequest, planned, read_request

REPORT: TypeAdapter[Report] = TypeAdapter(Report)


class Engine:
    """Scores requests with the rubrics of a shelf. Safe to share between threads: it keeps nothing of a request."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def score(self, body: JsonValue) -> Report:
        """The report for a request as parsed JSON. InputError where it cannot be scored; nothing else is raised."""
        return self.answer(read_request(body))

    def answer(self, request: ScoreRequest) -> Report:
        """The report for a request that was read before."""
        if request.judges not in (None, "off"):
            raise InputError.at("/judges", "no judge model is set; expected off")
        return conclude(self.plan(request), tags=request.tags)

    def plan(self, request: ScoreRequest) -> Plan:
        """What code decides of a request, and what a judge would be asked."""
        return planned(request, self.shelf.find(request.rubric))


def report_json(report: Report) -> bytes:
    """The report as JSON: the same bytes for the same report, whoever asks."""
    return REPORT.dump_json(report)


@cache
def default_engine() -> Engine:
    """An engine with the packaged rubrics alone."""
    return Engine(Shelf())


def score(request: dict[str, object]) -> Report:
    """The report for a request in the form of POST /v1/score, with the packaged rubrics.

    Raises InputError naming every place that is wrong.
    """
    return default_engine().score(request)  # pyright: ignore[reportArgumentType] (checked on reading)


def plan(request: dict[str, object]) -> Plan:
    """What code decides of a request, and what a judge would be asked."""
    return default_engine().plan(read_request(request))  # pyright: ignore[reportArgumentType] (checked on reading)
