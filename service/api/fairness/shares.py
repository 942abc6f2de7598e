"""Fair shares of something limited: nobody takes what others would need."""

from __future__ import annotations


class Shares:
    """How much of something each name holds.

    A name may take as much as it leaves free for the others: alone it gets half, and the next one finds room. With n
    greedy names each holds one part of n + 1, and one part stays free. `each`: the most that a name ever holds.

    >>> shares = Shares(4)
    >>> [shares.take("a") for _ in range(3)], shares.take("b"), shares.take("b")
    ([True, True, False], True, False)
    """

    def __init__(self, capacity: int, *, each: int | None = None) -> None:
        self.capacity = capacity
        self.total = 0
        self._each = capacity if each is None else each
        self._held: dict[str, int] = {}

    def count_held(self, name: str) -> int:
        """Return what a name holds."""
        return self._held.get(name, 0)

    def count_room(self, name: str) -> int:
        """Return what a name may take now."""
        return self._count_room(self._held.get(name, 0))

    def _count_room(self, held: int) -> int:
        return min(self.capacity - self.total - held, self._each - held)

    def take(self, name: str, amount: int = 1) -> bool:
        """Take the amount and return True, or take nothing and return False."""
        held = self._held.get(name, 0)
        if amount > self._count_room(held):
            return False
        self._held[name] = held + amount
        self.total += amount
        return True

    def give(self, name: str, amount: int = 1) -> None:
        """Give the amount back."""
        self.total -= amount
        self._held[name] -= amount
        if not self._held[name]:
            del self._held[name]
