"""Questions through the providers' own batch endpoints, which answer within a day at half the price."""

PROVIDERS = ("openai", "anthropic")
"""Providers whose batches are used, as they begin the name of a model."""


def is_batchable(model: str) -> bool:
    """Whether a model's name is that of such a provider, or leaves the provider out."""
    prefix, slash, _ = model.partition("/")
    return not slash or prefix in PROVIDERS
