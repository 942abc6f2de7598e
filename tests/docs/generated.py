"""The parts of pages that the code knows: tables and sections between `<!-- generated: NAME -->` and `<!-- end -->`.

`python -m tests.docs.generated` writes them; test_tables.py fails if one is not what it would write.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from service import Registry
from service.api.access import PUBLIC, find_scope
from service.api.app import create_app
from service.api.metrics import BacklogCollector, ServiceMetrics
from service.asking.cache.disk import DiskCache
from service.cli.commands.rubrics import count_questions
from service.core.critics import Critic
from service.core.judging.prompts import Usage
from service.core.models.kinds import list_kinds
from service.core.rubric import CHECKS
from service.intake.reading import list_formats
from service.problem_types import TYPES
from service.reading.packaged_files import read_explanations
from service.reporting.breaks import ReportCounts
from service.settings import list_settings
from service.store.access.usage import DayUsage
from service.store.jobs.backlog import Backlog
from tests.docs.pages import PAGES, ROOT, Page

ROUTE_COLUMNS = "route | scope | what it does"
EXAMPLE, EXAMPLES = ("verdict", "score", "coverage", "range"), 20
MARKED = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def write_table(head: str, rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table. `head`: the names of its columns, with bars between."""
    lines = [head.split(" | "), ["---"] * (head.count("|") + 1), *(map(write_cell, row) for row in rows)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def write_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def name(text: str) -> str:
    return f"`{text}`"


def read_text(kind: type) -> str:
    """The text of a docstring, without its examples."""
    return (kind.__doc__ or "").split(">>>")[0]


def settings() -> str:
    rows = [(name(variable), name(default) if default else "none", text) for variable, default, text in list_settings()]
    return write_table("setting | default | meaning", rows)


def formats() -> str:
    rows = [(name(one.name), one.summary, one.hint) for one in list_formats()]
    return write_table("format | what it is | recognised by", rows)


def matchers() -> str:
    found = {kind: read_text(critic) for kind, critic in list_kinds(Critic).items()}
    own = {kind: critic.model_fields.keys() - {"kind", "optional"} for kind, critic in list_kinds(Critic).items()}
    rows = [(name(kind), ", ".join(map(name, sorted(own[kind]))), text) for kind, text in sorted(found.items())]
    return write_table("matcher | settings | matches", rows)


def criteria() -> str:
    rows = [
        (name(one.id), one.stage, name(one.check.kind), f"{one.weight:g}", "yes" if one.must_pass else "")
        for one in Registry().find("four_step").criteria
    ]
    return write_table("criterion | stage | check | weight | must pass", rows)


def checks() -> str:
    return write_table(
        "check | what it does",
        [(name(kind), read_text(check).split("\n\n")[0]) for kind, check in sorted(CHECKS.items())],
    )


def routes() -> str:
    rows = defaultdict[str, list[tuple[str, ...]]](list)
    for path, methods in create_app().openapi()["paths"].items():
        for method, one in methods.items():
            scope, text = write_scope(path, method.upper()), one["description"].split("\n\n")[0]
            rows[one["tags"][0]].append((name(f"{method.upper()} {path}"), scope, text))
    return "\n".join(f"### Routes: {tag}\n\n{write_table(ROUTE_COLUMNS, found)}" for tag, found in rows.items())


def write_scope(path: str, method: str) -> str:
    if path in PUBLIC:
        return "no key needed"
    return name(scope) if (scope := find_scope(path, method)) else "any"


def metrics() -> str:
    """The metrics of a process that has counted one of everything."""
    usage = DayUsage("t", "2026-11-22", 1, 1, 1, 1, 1.0, 1, 1.0)
    backlog = Backlog({"in_progress": 1}, 1, 1, 1, 1, 1, (usage,))
    found = ServiceMetrics({}, backlog=BacklogCollector(lambda: backlog))
    found.watch_cache(DiskCache(Path("nowhere"), ttl=1.0, max_bytes=1))
    found.count_answer("/v1/score", "POST", 200, 0.1)
    found.count_ask("m", 1.0, Usage(1, 1, 1.0))
    found.count(ReportCounts("", "pass", Counter({("errored", "timeout"): 1})))
    text = bytes(asyncio.run(found.render_exposition()).body).decode()
    rows = [
        (
            name(one.name + ("_total" if one.type == "counter" else "")),
            ", ".join(
                name(label) for label in dict.fromkeys(key for s in one.samples for key in s.labels) if label != "le"
            ),
            one.type,
            one.documentation,
        )
        for one in text_string_to_metric_families(text)
        if not one.name.endswith("_created")
    ]
    return write_table("metric | labels | type | counts", rows)


def exit_codes() -> str:
    return write_table(
        "code | means", [(code, meaning) for code, (meaning, _) in read_explanations()["exit_codes"].items()]
    )


def findings() -> str:
    return write_explanations("findings", "code")


def causes() -> str:
    return write_explanations("causes", "cause")


def write_explanations(kind: str, head: str) -> str:
    rows = [(name(one), meaning, fix) for one, (meaning, fix) in read_explanations()[kind].items()]
    return write_table(f"{head} | means | what to do", rows)


def problems() -> str:
    sections = [
        f"### {one.title}\n\nStatus {one.status}. {one.cause}\n\n**Fix:** {one.fix}\n"
        for one in sorted(TYPES, key=lambda one: one.status)
    ]
    return "\n".join(sections)


def examples() -> str:
    cases = yaml.safe_load((ROOT / "tests/data/verdicts/examples.yaml").read_text("utf-8"))["cases"]
    rows = [(case["name"], *map(write_figure, map(case["want"].get, EXAMPLE))) for case in cases[:EXAMPLES]]
    return write_table(f"example | {' | '.join(EXAMPLE)}", rows)


def write_figure(figure: Any) -> str:
    return " to ".join(map(str, figure)) if isinstance(figure, list) else "none" if figure is None else str(figure)


def questions() -> str:
    rows = [(name(one.id), *map(str, found)) for one in Registry() if any(found := count_questions(one))]
    return write_table("rubric | a call | a turn | a trace | spared", rows)


PARTS: Mapping[str, Callable[[], str]] = MappingProxyType(
    {
        one.__name__: one
        for one in (
            *(settings, formats, matchers, criteria, checks, routes, exit_codes, problems, examples, questions),
            *(findings, causes, metrics),
        )
    }
)


def write_part(part: str) -> str:
    return f"\n{PARTS[part]()}\n"


def list_parts(page: Page) -> list[tuple[str, str]]:
    """The name and text of each generated part of a page."""
    return [(found[2], found[3]) for found in MARKED.finditer(page.text)]


def main() -> None:
    for page in PAGES:
        text = MARKED.sub(lambda found: f"{found[1]}{write_part(found[2])}{found[4]}", page.text)
        (ROOT / page.path).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
