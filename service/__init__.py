"""callgrade: scores what language models do with tools.

>>> report = score({"trace": {"format": "openai", "messages": [{"role": "user", "content": "Hi"}]},
...                 "expected": {"calls": "none"}})
>>> report.verdict, report.score
('pass', 1.0)
"""

from service.core.plan import Plan
from service.core.report import Report, conclude
from service.errors import CallgradeError, InputError
from service.io.engine import Engine, default_engine, report_json
from service.io.shelf import Shelf
from service.request import ScoreRequest

__version__ = "0.1.0"

__all__ = [
    "CallgradeError",
    "Engine",
    "InputError",
    "Plan",
    "Report",
    "ScoreRequest",
    "Shelf",
    "conclude",
    "plan",
    "report_json",
    "score",
]


def score(request: dict[str, object]) -> Report:
    """The report for a request in the form of POST /v1/score. Raises InputError naming every place that is wrong."""
    return default_engine().score(request)  # pyright: ignore[reportArgumentType] (checked on reading)


def plan(request: dict[str, object]) -> Plan:
    """What code decides of a request, and what a judge would be asked."""
    from service.request import read_request  # noqa: PLC0415

    return default_engine().plan(read_request(request))  # pyright: ignore[reportArgumentType] (checked on reading)
