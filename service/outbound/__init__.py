"""Checked, bounded HTTP to hosts that users name: providers, sandboxes, webhooks."""
