"""Values that are made often and cheaply: frozen classes with slots, and a property computed on first access."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar, dataclass_transform, overload

T = TypeVar("T")


class HasCachedJson:
    """A value that may cache its JSON, if many reports share it. The cache is no field: it is neither compared nor shown."""

    __slots__ = ("__dict__",)

    cached_json = b""


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def light(cls: type[T]) -> type[T]:
    """Make a dataclass that the type checker treats as frozen. One frozen at run time would take twice as long to create.

    >>> @light
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> Point(1), Point(1) == Point(1, 0), len({Point(1), Point(1, 0)})
    (Point(x=1, y=0), True, 1)
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)


S = TypeVar("S")


class lazy(Generic[S, T]):  # noqa: N801 (used as a decorator, like property)
    """Like functools.cached_property but without its lock, which in Python 3.11 costs more than most of our values.

    Two threads may compute the same value at once; both get equal ones.
    """

    def __init__(self, make: Callable[[S], T]) -> None:
        self.make = make
        self.name = make.__name__
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type[S]) -> lazy[S, T]: ...

    @overload
    def __get__(self, instance: S, owner: type[S] | None = None) -> T: ...

    def __get__(self, instance: S | None, owner: type[S] | None = None) -> lazy[S, T] | T:
        """Compute the value and store it on the instance under the property's name, where later lookups find it first."""
        if instance is None:
            return self
        value = self.make(instance)
        instance.__dict__[self.name] = value
        return value
