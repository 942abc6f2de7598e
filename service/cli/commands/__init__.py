"""The commands: a file or folder for each. `service.cli.app` discovers them."""
