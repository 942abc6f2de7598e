"""The commands, by what they are about. `service.cli.app` discovers them."""
