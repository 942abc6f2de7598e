"""`callgrade compare`: the same cases under two models or prompts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from service.cli.console import console
from service.cli.exits import ExitCode
from service.cli.sections import comparison_sections, markdown, show
from service.cli.summarize import Reports
from service.summaries import as_json, compared


def run_compare(a: Path, b: Path, *, output_format: Literal["table", "json", "markdown"] = "table") -> ExitCode:
    """Compare and write. That a case got worse is told, and no failure: assertions are what fails."""
    left, right = Reports([a]).load(), Reports([b]).load()
    comparison = compared(left.read, right.read)
    if output_format == "json":
        sys.stdout.write(as_json(comparison).decode() + "\n")
    elif output_format == "markdown":
        sys.stdout.write(markdown(comparison_sections(comparison)))
    else:
        show(console(), comparison_sections(comparison))
    return ExitCode.DATA if left.refused or right.refused else ExitCode.PASSED
