"""The requests of all tables in `tests/data` and of the demonstration, by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import redirect_stderr
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

from service.cli import main
from service.reading import packaged_files
from tests import own_checks  # noqa: F401 (registers the checks that tables name)
from tests.core.test_gates import FILES, TABLES, called, request_of
from tests.core.test_verdicts import TABLE, body_of
from tests.tables import read_yaml

Json = Any
Named = Iterator[tuple[str, Json]]

DATA = Path(__file__).parents[1] / "data"


@cache
def read_cases() -> dict[str, Json]:
    """Every request by `table: case`. Where the table names no rubric, the request has none."""
    found: dict[str, Json] = {}
    for read in (_demo, _api, _gates, _carried, _verdicts, _evidence, _critics, _schemas, _traces, _views, _set):
        for name, body in read():
            assert name not in found, name
            found[name] = body
    return found


def _load(*parts: str) -> Json:
    return packaged_files.read_yaml(DATA.joinpath(*parts).read_text("utf-8"), source=parts[-1])


def _demo() -> Named:
    with TemporaryDirectory() as folder, redirect_stderr(StringIO()):
        file = Path(folder) / "cases.jsonl"
        assert main(["demo", "--save", str(file)]) == 0
        for number, line in enumerate(file.read_text("utf-8").splitlines()):
            yield f"demo: {number}", json.loads(line)


def _api() -> Named:
    for case in json.loads((DATA / "api" / "requests.json").read_text("utf-8")):
        yield f"api: {case['name']}", case["request"]


def _gates() -> Named:
    for file, table in zip(FILES, TABLES, strict=True):
        for case in table["cases"]:
            yield f"{file.stem}: {case['name']}", request_of(table, case)


def _one(check: Json, stage: str) -> Json:
    return {"id": "case", "criteria": [{"id": "it", "stage": stage, "check": check}]}


def _trace(calls: list[Any], answer: str | None = None, user: str = "Please.") -> Json:
    events = [{"user": user}, *[{"user": call} if isinstance(call, str) else called(*call) for call in calls]]
    return {"format": "callgrade", "events": events + ([] if answer is None else [{"assistant": answer}])}


RUBRICS = {
    "apple": "apple_trajectory",
    "arcade": "arcade",
    "bfcl": "bfcl_ast",
    "future_agi": "future_agi_function_calling",
}


def _carried() -> Named:
    for file in sorted((DATA / "carried").glob("*.yaml")):
        table = read_yaml(file)
        parts = table.items() if isinstance(table, dict) else [("cases", table)]
        tools = table.get("tools") if isinstance(table, dict) else None
        for part, rows in parts:
            for number, case in enumerate(rows if isinstance(rows, list) else []):
                if isinstance(case, dict) and isinstance(case.get("made"), list):
                    name = f"carried {file.stem} {part}: {number} {case.get('name', '')}"
                    yield name, _carried_body(RUBRICS.get(file.stem, f"uipath_tool_call_{part}"), tools, case)


def _carried_body(rubric: str, tools: Json, case: Json) -> Json:
    given = {k: v for k, v in (("tools", case.get("tools", tools)), ("state", case.get("state"))) if v is not None}
    body = {"rubric": {"extends": rubric, "compat": True}, "trace": _trace(case["made"]) | given}
    return body | {k: case[k] for k in ("expected",) if k in case}


def _verdicts() -> Named:
    for case in TABLE["cases"]:
        yield f"verdict: {case['name']}", body_of(case)
    for number, (tool, given, result, asked, answer) in enumerate(_load("verdicts", "right.yaml")):
        expected = {"calls": [{"tool": tool, "args": given}]}
        yield f"right: {number}", {"trace": _trace([(tool, given, result)], answer, asked), "expected": expected}
    for name, asked, calls, answer in _load("verdicts", "wrong.yaml"):
        yield f"wrong: {name}", {"trace": _trace(calls, answer, asked)}


def _evidence() -> Named:
    grounding, provenance = _one({"kind": "grounding"}, "integrate"), _one({"kind": "provenance"}, "arguments")
    table = _load("grounding", "findings.yaml")
    for group in table["groups"]:
        for number, (text, _) in enumerate(group["cases"]):
            trace = _trace(group["calls"], text, group.get("user", "Please.")) | {"tools": table["tools"]}
            yield f"{group['form']}: {number}", {"rubric": grounding, "trace": trace}
    table = _load("evidence", "provenance.yaml")
    for case in table["cases"]:
        trace = {"format": "callgrade", "events": case["events"], "tools": table["tools"]}
        yield f"provenance: {case['name']}", {"rubric": provenance, "trace": trace}
    table = _load("evidence", "injection.yaml")
    for case in [*table["malicious"], *table["benign"]]:
        trace = _trace([("pay", {}, {"x": [case["text"]], "ok": 1})], "Done.")
        yield f"injection: {case['name']}", {"trace": trace}


def _critics() -> Named:
    for entry in _load("critics", "cases.yaml"):
        calls = [("f", {"a": row[0]}) for row in entry["rows"]]
        expected = {"calls": [{"tool": "f", "args": {"a": entry["critic"]}} for _ in calls]}
        name = f"critic: {entry['critic']['kind']} {crc32(json.dumps(entry, default=str).encode()):08x}"  # wherever it stands
        yield name, {"trace": _trace(calls), "expected": expected}


def _schemas() -> Named:
    for case in _load("schemas", "cases.yaml"):
        given = [test[0] for test in case["tests"]]
        calls = [("f", value if isinstance(value, dict) else json.dumps(value)) for value in given]
        tools = [{"name": "f", "parameters": case["schema"]}]
        rubric = _one({"kind": "schema"}, "arguments")
        yield f"schema of: {case['name']}", {"rubric": rubric, "trace": {**_trace(calls), "tools": tools}}


def _traces() -> Named:
    for file in sorted((DATA / "traces").glob("*.json")):
        rows = json.loads(file.read_text("utf-8"))
        if isinstance(rows, dict):
            yield from (
                (f"same conversation: {form['format']} {n}", {"trace": form}) for n, form in enumerate(rows["forms"])
            )
        else:
            yield from ((f"trace {file.stem}: {row['name']}", {"trace": row["input"]}) for row in rows)


def _views() -> Named:
    for name, trace in _load("judges", "views.yaml")["traces"].items():
        yield f"view: {name}", {"trace": {"format": "callgrade", **trace}}


def _set() -> Named:
    table = _load("summary", "set.yaml")
    for case in table["cases"]:
        trace = _trace([(name, {}) for name in case["calls"]], "Done.")
        trace |= {"id": case["id"], "tools": [{"name": name} for name in table["tools"]]}
        yield f"set: {case['id']}", {"trace": trace} | {k: case[k] for k in ("expected", "tags") if k in case}
