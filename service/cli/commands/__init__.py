"""The commands, one module each, and a package for each group of them. `service.cli.command` finds them."""
