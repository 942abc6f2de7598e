"""List, show and check rubrics."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
import yaml
from typer import Argument

from service.cli import options
from service.cli.app import build_command_group
from service.cli.exits import ExitCode
from service.cli.inputs import find_rubric
from service.cli.options import read_settings
from service.cli.screen import print_line, print_table, say
from service.core.judging.judges import JudgeCheck
from service.core.rubric import Rubric
from service.core.rubric_extension import build_rubric_schema
from service.errors import InputError
from service.own_checks import load_plugins
from service.registry import Registry
from service.wiring import build_engine

commands = build_command_group("rubrics", __doc__ or "")


@commands.command("list")
def list_rubrics() -> None:
    """List the available rubrics, bundled ones and your own.

    The column `asks` is the number of questions that judges are asked at most: per call / per turn / per trace.
    """
    rows: list[tuple[str, ...]] = []
    for rubric in _load_registry():
        counts = count_questions(rubric)[:3]
        asks = "/".join(map(str, counts)) if any(counts) else "-"
        rows.append((f"{rubric.id}@{rubric.version}", str(len(rubric.criteria)), asks, rubric.title))
    print_table(("rubric", "criteria", "asks", "title"), rows)


@commands.command("show")
def show_rubric(
    rubric: Annotated[str, Argument(metavar="ID", help="The rubric's id, id@version or file.")],
    output_format: Annotated[Literal["yaml", "json"], options.FORMAT] = "yaml",
    plugin: options.Plugin = None,
) -> None:
    """Print a complete rubric as it scores, including defaults and judges."""
    load_plugins(plugin)
    found = find_rubric(_load_registry(), rubric)
    sys.stdout.write(f"{found.model_dump_json()}\n" if output_format == "json" else _render_yaml(found))


@commands.command("schema")
def print_schema() -> None:
    """Print the JSON Schema of a rubric file, for editors."""
    sys.stdout.write(json.dumps(build_rubric_schema(), indent=2, sort_keys=True) + "\n")


@commands.command("check")
def check_rubrics(
    files: Annotated[list[Path], Argument(metavar="FILE...", help="Rubric files, YAML or JSON.")],
    plugin: options.Plugin = None,
) -> int:
    """Check rubric files: print every problem with its place, or ok and the rubric's hash."""
    load_plugins(plugin)
    registry, code = _load_registry(), ExitCode.PASSED
    for file in files:
        try:
            rubric = find_rubric(registry, file)
        except (typer.BadParameter, InputError) as error:
            for problem in error.problems if isinstance(error, InputError) else [error.message]:
                say(f"error: {problem}")
            code = ExitCode.CONFIG
        else:
            size = len(rubric.criteria)
            print_line(f"{file}: ok, {rubric.id}@{rubric.version}, {size} criteria, sha256 {rubric.digest}")
    return code


def count_questions(rubric: Rubric) -> tuple[int, int, int, int]:
    """Count the questions of a rubric's criteria when code decides none of them: per call, per turn with an answer, per trace.

    Every vote counts. The last number is of those that are not asked where an expectation lets code decide. Each matcher in words
    adds one more.
    """
    counts = {"step": 0, "turn": 0, "trace": 0}
    spared = 0
    for criterion in rubric.criteria:
        check = criterion.check
        if isinstance(check, JudgeCheck):
            judge = rubric.judges_by_id[check.judge]
            questions = judge.votes * max(1, len(judge.models))
            counts[judge.level] += questions
            spared += questions * (check.unless is not None)
    return counts["step"], counts["turn"], counts["trace"], spared


def _load_registry() -> Registry:
    return build_engine(read_settings()).registry


def _render_yaml(rubric: Rubric) -> str:
    class Plain(yaml.SafeDumper):
        """Writes YAML without anchors, which rubric files may not contain."""

        def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002
            return True

    return yaml.dump(rubric.model_dump(mode="json"), Dumper=Plain, sort_keys=False, allow_unicode=True, width=110)
