"""`callgrade cache clear`: removes all."""

from __future__ import annotations

from service.cli.command import command


@command(30)
def clear_cache() -> int:
    """Remove all judgements, of all who share the cache: judges are asked, and paid for, again."""
    from service.cli.own_cache import tell_removed, use_cache

    return tell_removed(use_cache(lambda cache: cache.clear()))
