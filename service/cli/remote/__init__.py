"""What the commands on a running service share."""
