"""Numbers as every view writes them."""

from __future__ import annotations


def render_number(value: float | None) -> str:
    """Render a score with two decimals; rounding never yields a 0.00 or 1.00 that was not measured.

    >>> render_number(0.999), render_number(1.0), render_number(0.001), render_number(None)
    ('0.99', '1.00', '0.01', '-')
    """
    if value is None:
        return "-"
    shown = round(value, 2)
    if shown in (0.0, 1.0) and 0 < value < 1:
        shown = 0.01 if shown == 0.0 else 0.99
    return f"{shown:.2f}"


def render_share(value: float | None) -> str:
    """Render a coverage in per cent, rounded down.

    >>> render_share(1.0), render_share(0.996), render_share(None)
    ('100%', '99%', '-')
    """
    return "-" if value is None else f"{int(value * 100 + 1e-9)}%"
