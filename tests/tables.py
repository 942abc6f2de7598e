"""The rows of a parametrised test as one test, which names every row that fails: to begin and end a test takes longer than a row.

Rows stay tests of their own where each has a fixture made for it, where rows have marks, and where a run asks for some of them:
with `-k`, by the name that a failure gives (`test_critics.py::test_case[present-3]`), or to list them (`--collect-only`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import is_hypothesis_test

DATA = Path(__file__).parent / "data"


def read_yaml(file: Path) -> Any:
    """The rows that a file keeps: in Python alone they took a tenth of all that it takes to collect the tests."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(file.read_bytes(), Loader=loader)  # noqa: S506 (a safe one)


def named(rows: Sequence[Any]) -> list[Any]:
    """Rows as tests that are named by their first member, which they are not given."""
    return [pytest.param(*rest, id=name) for name, *rest in rows]


def read_rows(name: str) -> list[Any]:
    """The rows of a file below `tests/data`, each a list that begins with the name of its test."""
    return named(read_yaml(DATA / name))


def fold(items: Sequence[pytest.Item], config: pytest.Config) -> Sequence[pytest.Item]:
    """The items that pytest has made of one function; one in their place, where that comes to the same."""
    if not _may_fold(items) or _are_asked_for(config):
        return items
    table = _fold(items)
    return [table] if _lasts(table) else items


def _are_asked_for(config: pytest.Config) -> bool:
    return bool(config.option.keyword or config.option.collectonly or any("[" in arg for arg in config.args))


def _may_fold(items: Sequence[Any]) -> bool:
    if len(items) < 2 or any(not hasattr(item, "callspec") or item.callspec.marks for item in items):
        return False
    test, rows = items[0].obj, items[0].callspec.params
    fixtures = items[0].session._fixturemanager
    return (
        items[0].cls is None
        and not is_hypothesis_test(test)
        and rows.keys() <= signature(test).parameters.keys()
        and not any(fixtures.getfixturedefs(name, items[0].parent) for name in rows)
    )


def _lasts(table: Any) -> bool:
    """Whether all that it is given outlives a test: nothing in it is another row's by mistake."""
    known = table._fixtureinfo.name2fixturedefs
    return "request" not in table.fixturenames and all(
        known[name][-1].scope != "function" for name in table.fixturenames
    )


def _fold(items: Sequence[Any]) -> pytest.Item:
    test: Callable[..., None] = items[0].obj
    rows = {item.callspec.id: item.callspec.params for item in items}
    whole = signature(test)

    @wraps(test)
    def table(**fixtures: Any) -> None:
        failed: dict[str, str] = {}
        skipped: dict[str, str] = {}
        for name, row in rows.items():
            try:
                test(**fixtures, **row)
            except pytest.skip.Exception as reason:
                skipped[name] = str(reason)
            except (Exception, pytest.fail.Exception):  # noqa: BLE001 (all that a test may fail with)
                failed[name] = f"{item.nodeid}[{name}]\n\n{item.repr_failure(pytest.ExceptionInfo.from_current())}"
        if failed:
            heading = f"{len(failed)} of {len(rows)} rows: {', '.join(failed)}"
            pytest.fail("\n\n".join([heading, *failed.values()]), pytrace=False)
        if skipped:
            pytest.skip("; ".join(f"{name}: {reason}" for name, reason in skipped.items()))

    left = [given for name, given in whole.parameters.items() if name not in items[0].callspec.params]
    table.__signature__ = whole.replace(parameters=left)
    item = pytest.Function.from_parent(items[0].parent, name=items[0].originalname, callobj=table)
    return item
