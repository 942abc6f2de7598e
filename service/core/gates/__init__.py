"""The deterministic checks: each is a class with a `kind`, in a file of this package, that `service.core.rubric` discovers."""
