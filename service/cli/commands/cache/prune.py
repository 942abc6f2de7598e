"""`callgrade cache prune`: removes what has expired and what is over the size."""

from __future__ import annotations

from service.cli.command import command


@command(20)
def prune_cache() -> int:
    """Remove the judgements that have expired or are over the size. Redis does so by itself."""
    from service.cli.own_cache import tell_removed, use_cache

    return tell_removed(use_cache(lambda cache: cache.prune()))
