"""The deterministic checks: each is a class with its `kind` in one file of this package, found by `service.core.rubric`."""
