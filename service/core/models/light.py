"""Values that flow: light to make, and immutable by type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


class HasCachedJson:
    """What may keep its JSON, where it is made for many. That is no member: it is neither compared nor shown."""

    __slots__ = ("__dict__",)

    cached_json = b""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def light(cls: type[T]) -> type[T]:
    """A dataclass that nobody changes: the type checker sees to that. At run time a frozen one takes twice as long to make.

    >>> @light
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), len({Point(1), Point(1, 0)})
    (Point(x=1, y=0), True, 1)
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
