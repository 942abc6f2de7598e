"""callgrade: scores what language models do with tools.

>>> from service import score
>>> report = score(
...     {
...         "trace": {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]},
...         "expected": {"calls": "none"},
...     }
... )
>>> report.verdict, report.score
('pass', 1.0)

The names below are loaded on first use, so that `import service` and `callgrade --help` stay light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from service.asking.own_judges import judge
    from service.cli.on_ray import ScoreBatches, share_limits
    from service.client.client import Client
    from service.client.connection import ForeignError, RefusedError, Retries, UnreachableError
    from service.core.conclusion.conclude import conclude
    from service.core.judging.own_answers import Answer, Evidence
    from service.core.outcome import Finding, Scored, Skipped
    from service.core.plan import Plan
    from service.core.report import Report
    from service.engine import Engine, plan, report_json, score
    from service.errors import CallgradeError, InputError
    from service.own_checks import ask, check
    from service.reading.request import ScoreRequest
    from service.registry import Registry
    from service.testing.checks import TraceFailure, assert_passes

__version__ = "0.1.0"

_HOMES = {
    "Answer": "service.core.judging.own_answers",
    "CallgradeError": "service.errors",
    "Client": "service.client.client",
    "Engine": "service.engine",
    "Evidence": "service.core.judging.own_answers",
    "Finding": "service.core.outcome",
    "ForeignError": "service.client.connection",
    "InputError": "service.errors",
    "Plan": "service.core.plan",
    "RefusedError": "service.client.connection",
    "Registry": "service.registry",
    "Report": "service.core.report",
    "Retries": "service.client.connection",
    "ScoreBatches": "service.cli.on_ray",
    "ScoreRequest": "service.reading.request",
    "Scored": "service.core.outcome",
    "Skipped": "service.core.outcome",
    "TraceFailure": "service.testing.checks",
    "UnreachableError": "service.client.connection",
    "ask": "service.own_checks",
    "assert_passes": "service.testing.checks",
    "check": "service.own_checks",
    "conclude": "service.core.conclusion.conclude",
    "judge": "service.asking.own_judges",
    "plan": "service.engine",
    "report_json": "service.engine",
    "score": "service.engine",
    "share_limits": "service.cli.on_ray",
}

__all__ = [
    "Answer",
    "CallgradeError",
    "Client",
    "Engine",
    "Evidence",
    "Finding",
    "ForeignError",
    "InputError",
    "Plan",
    "RefusedError",
    "Registry",
    "Report",
    "Retries",
    "ScoreBatches",
    "ScoreRequest",
    "Scored",
    "Skipped",
    "TraceFailure",
    "UnreachableError",
    "ask",
    "assert_passes",
    "check",
    "conclude",
    "judge",
    "plan",
    "report_json",
    "score",
    "share_limits",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"service has no {name}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
