"""Shares: so much of something that many want at once, of which nobody takes what others would need."""

from __future__ import annotations


class Shares:
    """How much of something each name holds.

    A name may take as much as it leaves free for the others: alone it comes to half, and whoever comes next finds room. With
    n greedy names each holds one part of n + 1, and one part stays free. `each`: what a name holds at most in any case.

    >>> shares = Shares(4)
    >>> [shares.take("a") for _ in range(3)], shares.take("b"), shares.take("b")
    ([True, True, False], True, False)
    """

    def __init__(self, most: int, *, each: int | None = None) -> None:
        self.most = most
        self.total = 0
        self._each = most if each is None else each
        self._held: dict[str, int] = {}

    def count_held(self, name: str) -> int:
        """What a name holds."""
        return self._held.get(name, 0)

    def room(self, name: str) -> int:
        """What a name may take now."""
        return self._find_room(self._held.get(name, 0))

    def _find_room(self, held: int) -> int:
        return min(self.most - self.total - held, self._each - held)

    def take(self, name: str, amount: int = 1) -> bool:
        """Takes it, or takes nothing and says False."""
        held = self._held.get(name, 0)
        if amount > self._find_room(held):
            return False
        self._held[name] = held + amount
        self.total += amount
        return True

    def give(self, name: str, amount: int = 1) -> None:
        """Gives back what was taken."""
        self.total -= amount
        self._held[name] -= amount
        if not self._held[name]:
            del self._held[name]
