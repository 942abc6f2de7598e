"""`callgrade cache clear`: remove all judgements."""

from __future__ import annotations

from service.cli.command import command


@command(30)
def clear_cache() -> int:
    """Remove all judgements, for everyone who shares the cache. Judges will be asked, and paid, again."""
    from service.cli.own_cache import print_removed, use_cache

    return print_removed(use_cache(lambda cache: cache.clear()))
