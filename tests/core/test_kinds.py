"""What each kind needs beside its file: a failure names the kind and what it lacks. Run this one first after adding one."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from service import Registry
from service.core.checks import Check
from service.core.critics import Critic
from service.core.models.kinds import list_kinds
from service.core.results.forms import FORMS
from service.core.rubric_extension import build_rubric_schema
from service.intake.gold import GoldForm
from service.intake.reading import FORMATS
from service.reading.packaged_files import find_resource
from tests.core.test_gates import TABLES, request_of
from tests.core.test_nesting import JUDGED, MATCHERS
from tests.docs.pages import Page

DATA = Path(__file__).parents[1] / "data"
WRITE_SCHEMA = ".venv/bin/callgrade rubrics schema > rubrics/schema.json"
SCHEMA = find_resource("rubrics") / "schema.json"
CRITICS, CHECKS = list_kinds(Critic), list_kinds(Check)
SET = {kind for kind, critic in CRITICS.items() if critic.model_fields.keys() - {"kind", "optional", "value"}}
BY_CODE = {kind for kind, check in CHECKS.items() if not check.__module__.startswith("service.core.judging.")}
BY_HAND = {"bfcl", "callgrade", "tau"}
"""Formats that no client writes: what they take is given by hand."""
REQUESTS = [request_of(table, case) for table in TABLES for case in table["cases"]]


def table(path: str) -> Any:
    return yaml.safe_load((DATA / path).read_text("utf-8"))


def find_checks() -> set[str]:
    """The kinds in rubrics that the tables of gates bring themselves."""
    own = [request["rubric"] for request in REQUESTS if isinstance(request["rubric"], dict)]
    return {criterion["check"]["kind"] for rubric in own for criterion in rubric.get("criteria", [])}


def find_gold() -> set[str]:
    return {one["format"] for r in REQUESTS if isinstance(one := r.get("expected"), dict) and "format" in one}


class Need(NamedTuple):
    """`kinds` that need something; those that have it; what it is and where it goes; whether nothing else may stand there."""

    kind: str
    kinds: Collection[str]
    having: Collection[str]
    what: str
    alone: bool = True


def need_row(kind: str, kinds: Collection[str], page: str, heading: str = "") -> Need:
    return Need(kind, kinds, Page(page).table_names(heading), f"a row in {page}")


def need_schema(kind: str, kinds: Collection[str]) -> Need:
    text = SCHEMA.read_text("utf-8")
    having = {one for one in kinds if f'"const": "{one}"' in text}
    return Need(kind, kinds, having, f"a place in the schema: {WRITE_SCHEMA}")


NEEDS = [
    Need("critic", CRITICS.keys() - JUDGED.keys(), {one["critic"]["kind"] for one in table("critics/cases.yaml")},
     "rows in tests/data/critics/cases.yaml"),
    Need("critic", SET, {one[0]["kind"] for one in table("critics/refused.yaml")},
     "settings that are refused in tests/data/critics/refused.yaml", alone=False),
    Need("critic", CRITICS, {*MATCHERS, *JUDGED},
     "a value that fits in MATCHERS (JUDGED: what only a judge decides) of tests/core/test_nesting.py"),
    need_schema("critic", CRITICS),
    Need("gate", BY_CODE, find_checks(), "a case in tests/data/gates", alone=False),
    need_schema("gate", CHECKS),
    Need("format", FORMATS, {file.stem for file in (DATA / "traces").glob("*.json")} - {"same_conversation"},
     "records in tests/data/traces, in a file named as the format"),
    Need("format", FORMATS, {file.parent.name for file in (DATA / "formats").glob("*/*.json")} | BY_HAND,
     "logs in tests/data/formats, in a folder named as the format"),
    Need("format of gold", list_kinds(GoldForm, "format"), find_gold(), "a case in tests/data/gates"),
    Need("form of results", {form.name for form in FORMS},
     {found[0] for case in table("results/structure.yaml")["cases"] for found in case["found"]},
     "a case in tests/data/results/structure.yaml", alone=False),
    Need("form of results", {form.name for form in FORMS},
     set(re.findall(r"\| `(\w+)` \|", Page("docs/results.md").text)), "a row in docs/results.md", alone=False),
    need_row("judge", Registry().judges, "docs/judges.md", "## The judges"),
    need_row("rubric", [rubric.id for rubric in Registry()], "docs/rubrics.md", "## The rubrics"),
]  # fmt: skip


@pytest.mark.parametrize("need", NEEDS, ids=lambda need: f"{need.kind}: {need.what}")
def test_every_kind_has_what_it_needs(need: Need):
    lacking = [f"the {need.kind} {name!r} lacks {need.what}" for name in sorted({*need.kinds} - {*need.having})]
    unknown = [f"no {need.kind} is named {name!r}: {need.what}" for name in sorted({*need.having} - {*need.kinds})]
    if found := lacking + (unknown if need.alone else []):
        pytest.fail("\n".join(found), pytrace=False)


def test_the_schema_for_editors_is_fresh():
    if json.loads(SCHEMA.read_text("utf-8")) != build_rubric_schema():
        pytest.fail(f"rubrics/schema.json is out of date: {WRITE_SCHEMA}", pytrace=False)
