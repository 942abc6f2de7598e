"""Differences between two states of the world, by JSON pointer."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from pydantic import JsonValue

from service.core.json.pointers import escape_token
from service.core.json.values import equals
from service.core.models.light import lazy

Op = Literal["add", "remove", "replace"]
Members = Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class JsonChange:
    """One change from one state to another, at `path`. `before` is None for an addition, `after` for a removal."""

    op: Op
    path: str
    before: JsonValue = None
    after: JsonValue = None


@dataclass(frozen=True)
class DiffOptions:
    """How to compare states.

    `ignore`: pointers whose subtrees do not matter; a `*` token stands for any one token. `keys`: by pointer to a list (with `*`
    likewise), the field that identifies its items; such a list is compared as an object by that field, and paths through it
    have the field's value in place of the index.
    """

    ignore: tuple[str, ...] = ()
    keys: Mapping[str, str] | None = None

    @lazy
    def _ignore_patterns(self) -> PointerPatterns:
        return PointerPatterns(self.ignore)

    @lazy
    def _key_patterns(self) -> PointerPatterns:
        return PointerPatterns(self.keys or {})

    def ignores(self, path: str) -> bool:
        """Whether the value at `path` does not matter."""
        return bool(self.ignore) and self._ignore_patterns.find_first(path) is not None

    def index_items(self, old: list[JsonValue], new: list[JsonValue], path: str) -> tuple[Members, Members]:
        """Index the items of two lists by their identifying field if it is present and unique in both, else by position."""
        pattern = self._key_patterns.find_first(path) if self.keys else None
        if self.keys and pattern is not None:
            olds, news = _index_by_key(old, self.keys[pattern]), _index_by_key(new, self.keys[pattern])
            if olds is not None and news is not None:
                return olds, news
        return _index_by_place(old), _index_by_place(new)


class PointerPatterns:
    """Pointers with `*` tokens, indexed to find the first one that matches a path without trying all.

    >>> PointerPatterns(["/b/*", "/*/c"]).find_first("/b/c"), PointerPatterns(["/*"]).find_first("/a/b")
    ('/b/*', None)
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self._written = list(patterns)
        self._root = _Node()
        for n, pattern in enumerate(self._written):
            node = self._root
            for token in pattern.split("/"):
                node = node.below.setdefault(token, _Node())
            node.number = n if node.number is None else node.number

    def find_first(self, path: str) -> str | None:
        """Return the first pattern that matches a path, or None."""
        nodes = [self._root]
        for token in path.split("/"):
            nodes = [node.below[name] for node in nodes for name in {token, "*"} if name in node.below]
        numbers = [node.number for node in nodes if node.number is not None]
        return self._written[min(numbers)] if numbers else None


@dataclass(slots=True)
class _Node:
    """A node of the trie of patterns: its children, and the number of the first pattern that ends here."""

    below: dict[str, _Node] = field(default_factory=dict[str, "_Node"])
    number: int | None = None


def _index_by_key(items: list[JsonValue], field: str) -> dict[str, JsonValue] | None:
    """Index the items by their identifying field; None if an item lacks it or two share a value."""
    named = [item for item in items if isinstance(item, Mapping) and field in item]
    keyed: dict[str, JsonValue] = {_make_token(item[field]): item for item in named}
    return keyed if len(keyed) == len(items) else None


def _index_by_place(items: list[JsonValue]) -> dict[str, JsonValue]:
    return {str(n): item for n, item in enumerate(items)}


def _make_token(value: JsonValue) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1 and 1.0 are one number
    return value if isinstance(value, str) else re.sub(r"\s", "", repr(value))


_GONE = object()


def diff(before: JsonValue, after: JsonValue, view: DiffOptions | None = None) -> tuple[JsonChange, ...]:
    """Return the changes from `before` to `after`, topmost paths only, sorted by path. Equality is typed.

    >>> diff({"a": 1, "b": [1, 2]}, {"a": 1.0, "b": [1, 3], "c": None})
    (JsonChange(op='replace', path='/b/1', before=2, after=3), JsonChange(op='add', path='/c', before=None, after=None))
    """
    return tuple(sorted(_find_changes(before, after, view or DiffOptions()), key=lambda change: change.path))


def _find_changes(before: JsonValue, after: JsonValue, view: DiffOptions) -> Iterator[JsonChange]:
    open_pairs: list[tuple[str, object, object]] = [("", before, after)]
    while open_pairs:
        path, old, new = open_pairs.pop()
        if view.ignores(path):
            continue
        members = None if old is _GONE or new is _GONE else _open_both(old, new, path, view)
        if members is None:
            yield from _compare_leaves(path, old, new)
            continue
        olds, news = members
        open_pairs += [
            (f"{path}/{escape_token(key)}", olds.get(key, _GONE), news.get(key, _GONE))
            for key in olds.keys() | news.keys()
        ]


def _open_both(old: object, new: object, path: str, view: DiffOptions) -> tuple[Members, Members] | None:
    """Return the members of both values if they are containers of the same kind, else None."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return cast("Members", old), cast("Members", new)
    if isinstance(old, list) and isinstance(new, list):
        return view.index_items(cast("list[JsonValue]", old), cast("list[JsonValue]", new), path)
    return None


def _compare_leaves(path: str, old: object, new: object) -> Iterator[JsonChange]:
    if old is _GONE:
        yield JsonChange("add", path, None, new)  # pyright: ignore[reportArgumentType]
    elif new is _GONE:
        yield JsonChange("remove", path, old, None)  # pyright: ignore[reportArgumentType]
    elif not equals(old, new):  # pyright: ignore[reportArgumentType]
        yield JsonChange("replace", path, old, new)  # pyright: ignore[reportArgumentType]


def covers(path: str, other: str) -> bool:
    """Whether `other` is `path` or lies below it."""
    return other == path or other.startswith(f"{path}/")


class ChangeIndex:
    """Changes indexed by path, to find those at, above or below a place without looking at all of them."""

    def __init__(self, changes: Iterable[JsonChange]) -> None:
        self._sorted = sorted(changes, key=lambda change: change.path)
        self._paths = [change.path for change in self._sorted]

    def find_touching(self, path: str, most: int = 1) -> list[JsonChange]:
        """Return at most `most` changes at `path`, above it or below it, sorted by path.

        >>> changes = [JsonChange("add", "/a"), JsonChange("add", "/a/b/c"), JsonChange("add", "/ab")]
        >>> [change.path for change in ChangeIndex(changes).find_touching("/a/b", 3)]
        ['/a', '/a/b/c']
        """
        ends = [n for n, character in enumerate(path) if character == "/"]
        found = [change for end in ends for change in self._find_at(path[:end], most)]
        start, end = bisect_left(self._paths, f"{path}/"), bisect_left(self._paths, f"{path}0")  # "0" comes after "/"
        return [*found, *self._find_at(path, most), *self._sorted[start : min(start + most, end)]][:most]

    def _find_at(self, path: str, most: int) -> Sequence[JsonChange]:
        start = bisect_left(self._paths, path)
        return self._sorted[start : min(start + most, bisect_right(self._paths, path))]


@dataclass(frozen=True, slots=True)
class StateProgress:
    """How far the expected changes were made."""

    expected: tuple[JsonChange, ...]
    made: tuple[JsonChange, ...]
    missing: tuple[JsonChange, ...]
    wrong: tuple[JsonChange, ...]
    unexpected: tuple[JsonChange, ...]

    @property
    def value(self) -> float:
        """Expected changes made, divided by expected plus unexpected changes; 1.0 if there are neither."""
        total = len(self.expected) + len(self.unexpected)
        return len(self.made) / total if total else 1.0

    @property
    def passed(self) -> bool:
        """Whether every expected change was made, and no other."""
        return not (self.missing or self.wrong or self.unexpected)


def compare(
    initial: JsonValue, expected: JsonValue, observed: JsonValue, view: DiffOptions | None = None
) -> StateProgress:
    """Compare the changes from `initial` to `observed` with those from `initial` to `expected`.

    An expected change is made if nothing at or below its path differs from the expected state; wrong if its path was changed to
    something else; missing if it was left unchanged. Any other difference from the initial state is unexpected.
    """
    due, done = diff(initial, expected, view), diff(initial, observed, view)
    gaps = diff(expected, observed, view)
    at_gaps, at_done, at_due = ChangeIndex(gaps), ChangeIndex(done), ChangeIndex(due)
    open_changes = [change for change in due if at_gaps.find_touching(change.path)]
    return StateProgress(
        expected=due,
        made=tuple([change for change in due if not at_gaps.find_touching(change.path)]),
        missing=tuple([change for change in open_changes if not at_done.find_touching(change.path)]),
        wrong=tuple([change for change in open_changes if at_done.find_touching(change.path)]),
        unexpected=tuple([change for change in done if not at_due.find_touching(change.path)]),
    )
