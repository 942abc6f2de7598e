"""A property computed on first access."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, overload

S = TypeVar("S")
T = TypeVar("T")


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
