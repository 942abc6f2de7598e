"""`callgrade cache prune`: remove expired judgements, and those beyond the size limit."""

from __future__ import annotations

from service.cli.command import command


@command(20)
def prune_cache() -> int:
    """Remove expired judgements, and those beyond the size limit. Redis does this by itself."""
    from service.cli.own_cache import print_removed, use_cache

    return print_removed(use_cache(lambda cache: cache.prune()))
