"""`callgrade rubrics schema`: print what rubrics/schema.json contains."""

from __future__ import annotations

import sys

from service.cli.command import command
from service.cli.exits import ExitCode


@command(30)
def print_schema() -> int:
    """Print the JSON Schema of a rubric file, for editors."""
    import json

    from service.core.rubric_extension import build_rubric_schema

    sys.stdout.write(json.dumps(build_rubric_schema(), indent=2, sort_keys=True) + "\n")
    return ExitCode.PASSED
