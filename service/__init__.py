"""callgrade: scores what language models do with tools.

>>> from service import score
>>> report = score(
...     {"trace": {"format": "openai", "messages": [{"role": "user", "content": "Hi"}]}, "expected": {"calls": "none"}}
... )
>>> report.verdict, report.score
('pass', 1.0)

The names below are loaded when they are first used, so that `import service` and `callgrade --help` stay light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from service.core.conclusion.conclude import conclude
    from service.core.plan import Plan
    from service.core.report import Report
    from service.engine import Engine, plan, report_json, score
    from service.errors import CallgradeError, InputError
    from service.registry import Shelf
    from service.request import ScoreRequest

__version__ = "0.1.0"

_HOMES = {
    "CallgradeError": "service.errors",
    "Engine": "service.engine",
    "InputError": "service.errors",
    "Plan": "service.core.plan",
    "Report": "service.core.report",
    "ScoreRequest": "service.request",
    "Shelf": "service.registry",
    "conclude": "service.core.conclusion.conclude",
    "plan": "service.engine",
    "report_json": "service.engine",
    "score": "service.engine",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"service has no {name}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
