"""Findings as text."""

from __future__ import annotations

from service.core.outcome import Finding


def render_finding(finding: Finding) -> str:
    """Return a finding's message, prefixed with its argument unless the message begins with it.

    >>> render_finding(Finding("schema_required", "required, and missing", "/steps/0/call/arguments/order_id"))
    'order_id: required, and missing'
    """
    _, _, argument = finding.path.partition("/call/arguments/")
    return finding.message if finding.message.startswith(argument) else f"{argument}: {finding.message}"
