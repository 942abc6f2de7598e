"""callgrade scores what language models do with tools. It exports the public names of `service` and loads each on first use.

>>> import callgrade
>>> report = callgrade.score(
...     {
...         "trace": {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]},
...         "expected": {"calls": "none"},
...     }
... )
>>> report.verdict
'pass'
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import service
from service import __all__, __version__  # noqa: F401 (for `from callgrade import *`)

if TYPE_CHECKING:
    from service import *  # noqa: F403 (the list of names is kept in one place)


def __getattr__(name: str) -> Any:
    return getattr(service, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
