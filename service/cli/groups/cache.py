"""Commands about the cache of judgements. Bodies are imported when a command runs."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

cache = typer.Typer(name="cache", help="Look into, prune and clear the cache of judgements.", rich_markup_mode=None)


@cache.callback(invoke_without_command=True)
def _cache(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@cache.command("stats")
def cache_stats(
    output_format: Annotated[
        Literal["table", "json"], typer.Option("--format", "-f", help="How it is written.")
    ] = "table",
) -> int:
    """Say where the cache is, how many judgements it holds and how large it is."""
    from service.cli.cache import show_stats  # noqa: PLC0415

    return show_stats(output_format=output_format)


@cache.command("prune")
def cache_prune() -> int:
    """Remove the judgements that have expired or are over the size. Redis does so by itself."""
    from service.cli.cache import prune_cache  # noqa: PLC0415

    return prune_cache()


@cache.command("clear")
def cache_clear() -> int:
    """Remove all judgements, of all who share the cache: judges are asked, and paid for, again."""
    from service.cli.cache import clear_cache  # noqa: PLC0415

    return clear_cache()
