"""Explain a code, a cause, a criterion or an exit code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Annotated, NamedTuple

import typer
from typer import Argument

from service.cli.screen import print_table, show
from service.core.judging.judges import JudgeCheck
from service.problem_types import TYPES
from service.reading.packaged_files import read_explanations
from service.registry import Registry
from service.reporting.document import Section

KINDS = {"words": "word of a report", "findings": "finding", "causes": "cause", "exit_codes": "exit code"}


class Explanation(NamedTuple):
    """One name that can be explained."""

    name: str
    kind: str
    meaning: str
    fix: str = ""


def main(
    name: Annotated[
        str | None,
        Argument(metavar="NAME", help="A finding's code, a cause, a criterion, an exit code or a problem's title."),
    ] = None,
) -> None:
    """Explain a code, a cause, a criterion, an exit code or a problem of the HTTP API. Needs no network.

    Without a name, list what can be explained.
    """
    known = list(list_explanations())
    if name is None:
        kinds = dict.fromkeys(one.kind for one in known)
        rows = [(kind, ", ".join(one.name for one in known if one.kind == kind)) for kind in kinds]
        print_table(("kind", "names"), rows, title="What can be explained")
        return
    wanted = _fold(name)

    def fits(other: str) -> bool:
        is_start = other.endswith("*") and wanted.startswith(other[:-1]) and wanted != other[:-1]
        return other == wanted or is_start

    found = [one for one in known if fits(_fold(one.name))]
    if not found:
        near = get_close_matches(wanted, [one.name for one in known], n=3, cutoff=0.6)
        hint = f"did you mean {', '.join(near)}?" if near else "`callgrade explain` lists all names"
        raise typer.BadParameter(f"nothing is called {name!r}; {hint}", param_hint="NAME")
    show(
        Section(f"{name} ({one.kind})", text=(one.meaning, *([f"What to do: {one.fix}"] if one.fix else [])))
        for one in found
    )


def _fold(name: str) -> str:
    """Fold a name, so that a code is found as a view words it: `not certified` and `not_certified` are one."""
    return name.strip().casefold().replace(" ", "_")


def list_explanations() -> Iterator[Explanation]:
    """Yield everything that can be explained, by kind."""
    for entries, kind in KINDS.items():
        yield from [Explanation(name, kind, *texts) for name, texts in read_explanations()[entries].items()]
    for one in (registry := Registry()).find("four_step").criteria:
        judge = registry.judges.get(one.check.judge) if isinstance(one.check, JudgeCheck) else None
        text = judge.question.strip() if judge else re.split(r"\n\s*\n", type(one.check).__doc__ or "")[0]
        yield Explanation(one.id, f"criterion, stage {one.stage}", " ".join(text.split()))
    for problem in TYPES:
        yield Explanation(problem.title, "problem of the HTTP API", problem.cause, problem.fix)
