"""Checks of the user's own in Python: `@callgrade.check`, and where they are found.

A check is registered when its module is imported: by the program itself, by `--plugin FILE`, or by an entry point of the group
`callgrade.plugins`. On a server only the operator installs packages, so only their entry points count there.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar, cast

from pydantic import JsonValue, TypeAdapter

from service.asking.own_judges import OWN_JUDGES
from service.core.gates.custom import (
    OWN_CHECKS,
    CheckFailedError,
    CheckRun,
    CustomGate,
    JudgeQuestion,
    Level,
    OwnCheck,
)
from service.core.rubric import STAGES, Criterion, Rubric, Stage, change_rubric
from service.errors import SettingsError

LOG = logging.getLogger("callgrade.checks")

F = TypeVar("F", bound=Callable[..., object])

PARAMETERS = ("trace", "step", "turn", "expectation", "params")
SLOW_S = 1.0
"""Seconds from which a call of a check is called slow in the report."""
DEADLINE_S = 60.0
"""Seconds after which a coroutine is cancelled. A plain function cannot be interrupted."""


def check(name: str, *, stage: Stage, threshold: float = 0.5) -> Callable[[F], F]:
    """Register a function as a check under a name, which is also its criterion's id where no rubric names it.

    Its parameters say what it looks at: `trace` and, for each call, `step`, or, for each turn, `turn` (from 1); besides,
    `expectation` (or None) and `params`, annotated with a pydantic model or a dataclass, whose values a rubric gives. It
    returns True or False; a number in [0, 1], which passes from `threshold`; a list of `Finding`; an outcome; what
    `callgrade.ask` returns, so that a judge decides; or None for nothing to check. It may be a coroutine function.

    Raises TypeError for other parameters, ValueError for an unknown stage.
    """
    if stage not in STAGES:
        raise ValueError(f"no stage {stage!r}; expected one of {', '.join(STAGES)}")

    def register(function: F) -> F:
        takes = list(inspect.signature(function).parameters)
        unknown = [one for one in takes if one not in PARAMETERS]
        if unknown or {"step", "turn"} <= set(takes):
            raise TypeError(
                f"a check takes {', '.join(PARAMETERS)}, and step or turn; not {', '.join(unknown or takes)}"
            )
        level: Level = "step" if "step" in takes else "turn" if "turn" in takes else "trace"
        hints = inspect.get_annotations(function, eval_str=True)
        form = TypeAdapter[Any](hints["params"]) if "params" in takes else None
        waits = inspect.iscoroutinefunction(function)
        body = _build_runner(name, function, waits=waits)
        OWN_CHECKS[name] = OwnCheck(name, stage, level, frozenset(takes), form, threshold, waits, body)
        return function

    return register


def ask(words: str, value: JsonValue, path: str = "") -> JudgeQuestion:
    """Ask the judge of natural language whether a value fits these words. `path`: the value's JSON pointer in the trace."""
    return JudgeQuestion(words, value, path)


MAX_EXTENDED = 64
_EXTENDED: dict[tuple[str, frozenset[str]], Rubric] = {}
"""The last extended rubrics, by digest and added checks: the same one is compiled once."""


def add_checks(rubric: Rubric, names: Collection[str]) -> Rubric:
    """Add a criterion for each of these checks that the rubric does not name, with weight 1 and without params."""
    key = rubric.digest, frozenset(names)
    if key not in _EXTENDED:
        while len(_EXTENDED) >= MAX_EXTENDED:
            del _EXTENDED[next(iter(_EXTENDED))]
        _EXTENDED[key] = _extend(rubric, names)
    return _EXTENDED[key]


def _extend(rubric: Rubric, names: Collection[str]) -> Rubric:
    named = {one.check.name for one in rubric.criteria if isinstance(one.check, CustomGate)}
    added = [_build_criterion(OWN_CHECKS[name]) for name in sorted(names) if name not in named]
    return change_rubric(rubric, criteria=(*rubric.criteria, *added)) if added else rubric


def name_checks(functions: Iterable[Callable[..., object]]) -> list[str]:
    """Return the names under which functions are registered; TypeError for one that is not."""
    names: list[str] = []
    for function in functions:
        name = getattr(function, "callgrade_check", None)
        if not isinstance(name, str):
            raise TypeError(f"{function!r} is no check; decorate it with @callgrade.check")
        names.append(name)
    return names


def load_plugins(files: Iterable[Path] | None) -> frozenset[str]:
    """Import Python files and return the names of the checks that they register; SettingsError if one cannot be used.

    They may register judges too (`service.asking.own_judges`), or only judges.
    """
    return frozenset(name for file in files or () for name in _load_plugin(file))


def _load_plugin(file: Path) -> set[str]:
    before, judges = set(OWN_CHECKS), dict(OWN_JUDGES)
    spec = spec_from_file_location(f"callgrade_plugin_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise SettingsError.at("--plugin", f"{file}: expected a Python file")
    try:
        spec.loader.exec_module(module_from_spec(spec))
    except Exception as error:
        LOG.debug("the plugin failed", exc_info=error)
        raise SettingsError.at("--plugin", f"{file}: {type(error).__name__}: {error}") from None
    added = set(OWN_CHECKS) - before
    if not added and judges == OWN_JUDGES:
        message = f"{file}: it registers no check and no judge; decorate one with @callgrade.check or @callgrade.judge"
        raise SettingsError.at("--plugin", message)
    return added


@cache
def load_installed() -> None:
    """Import the checks and judges of installed packages, once per process. SettingsError if one cannot be imported."""
    for one in entry_points(group="callgrade.plugins"):
        try:
            one.load()
        except Exception as error:
            raise SettingsError.at("", f"the entry point {one.name} of callgrade.plugins: {error}") from error


def _build_criterion(own: OwnCheck) -> Criterion:
    return Criterion.model_validate(
        {"id": own.name, "stage": own.stage, "check": {"kind": "custom", "name": own.name, "params": {}}}
    )


def _build_runner(
    name: str, function: Callable[..., object], *, waits: bool
) -> Callable[[Mapping[str, object]], CheckRun]:
    """Wrap a function: its failures are logged with their traceback, and slow calls are named."""
    function.callgrade_check = name  # pyright: ignore[reportFunctionMemberAccess] (so that it can be passed to `score`)

    def run(arguments: Mapping[str, object]) -> CheckRun:
        start = perf_counter()
        try:
            result = function(**arguments)
            if waits:
                result = _wait(cast("Coroutine[Any, Any, object]", result))
        except TimeoutError:
            raise CheckFailedError(f"no result within {DEADLINE_S:g} seconds") from None
        except Exception as error:
            LOG.exception("the check %s failed", name)
            raise CheckFailedError(f"{type(error).__name__}: {error}") from None
        took = perf_counter() - start
        return CheckRun(result, f"the check {name} took {took:.1f} s" if took >= SLOW_S else "")

    return run


def _wait(work: Coroutine[Any, Any, object]) -> object:
    """Wait for a coroutine in a loop and thread of its own, since the caller may be inside a loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(asyncio.wait_for(work, DEADLINE_S))).result()
