"""Render a gate as JUnit XML."""

from __future__ import annotations

from collections.abc import Iterator

from service.cli.rendering.junit import escape_xml
from service.reporting.summary.gate import AssertionResult, Gate


def render_junit(gate: Gate) -> str:
    """Render a gate as JUnit XML, with one test case per assertion."""
    bad = {"failures": ("failed",), "errors": ("error", "undecided"), "skipped": ("skipped",)}
    counts = " ".join(f'{name}="{sum(r.status in statuses for r in gate.results)}"' for name, statuses in bad.items())
    head = f'<testsuite name="callgrade gate" tests="{len(gate.results)}" {counts}>'
    cases = "\n".join(line for one in gate.results for line in _render_case(one))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{head}\n{cases}\n</testsuite>\n</testsuites>\n'


def _render_case(one: AssertionResult) -> Iterator[str]:
    yield f'  <testcase name="{escape_xml(one.assertion)}" classname="{one.broke_at or "gate"}">'
    message = escape_xml(one.message)
    if one.status == "failed":
        cases = escape_xml(", ".join(one.failing))
        yield f'    <failure type="{one.broke_at or "assertion"}" message="{message}">{cases}</failure>'
    elif one.status in ("error", "undecided"):
        kind = "not_measured" if one.status == "error" else "undecided"
        yield f'    <error type="{kind}" message="{message}"/>'
    elif one.status == "skipped":
        yield f'    <skipped message="{message}"/>'
    elif one.status == "warned":
        yield f"    <system-out>warning: {message}</system-out>"
    yield "  </testcase>"
