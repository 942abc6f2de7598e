"""The commands: one module each, one package per group. `service.cli.command` discovers them."""
