"""The names and the doors: operations over HTTP, commands, settings, kinds, digests and keys."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr
from io import StringIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.frozen.asking import Asker
from tests.frozen.cases import DATA, read_cases
from tests.frozen.doors import (
    cache_keys,
    command_tree,
    judge_digests,
    judge_levels,
    library_names,
    replies_kept,
    rubric_digests,
    run_command,
    setting_defaults,
)
from tests.frozen.golden import canonical, differences, read_golden, write_golden
from tests.frozen.schemas import Meaning, unions_in

Json = Any

FILE = "surface.json"

CACHED = "demo: 10"
"""A case whose replies are kept."""

KEYS = 6
"""Cache keys of each judge."""

FORMS = ("nargs", "multiple", "is_flag", "count", "envvar", "hidden")
BOUNDS = ("type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "default")


def make_surface() -> dict[str, Json]:
    """All of it."""
    with Asker() as ask:
        document = ask("GET", "/openapi.json").json
        metrics = ask("GET", "/metrics").body.decode()
    found = {
        "operations": dict(_operations(document)),
        "unions": [[name, *kinds] for name, kinds in sorted(set(unions_in(document)))],
        "rubrics": rubric_digests(),
        "rubric schema": {"meaning": _rubric_schema()},
        "judges": judge_digests(),
        "cache keys": _keys(),
        "cached replies": replies_kept(read_cases()[CACHED], {})[0],
        "metrics": dict(_metrics(metrics)),
        "junit": _junit(),
        "library": library_names(),
        "commands": dict(_commands(command_tree(), "callgrade")),
        "settings": setting_defaults(),
    }
    return json.loads(canonical(found))


def write_surface() -> None:
    """Writes what is so now."""
    write_golden(FILE, make_surface())


def check_surface() -> list[str]:
    """What differs from what was kept."""
    return differences(read_golden(FILE), make_surface(), most=20)


def _operations(document: Json) -> Iterator[tuple[str, Json]]:
    prefix = "#/components/schemas/"
    meaning = Meaning(document["components"]["schemas"], prefix)
    for path, methods in document["paths"].items():
        for method, one in methods.items():
            yield (
                f"{method.upper()} {path}",
                {
                    "id": one["operationId"],
                    "parameters": [_parameter(row) for row in one.get("parameters", [])],
                    "takes": _contents(meaning, one.get("requestBody", {})),
                    "gives": {status: _contents(meaning, given) for status, given in one["responses"].items()},
                },
            )


def _parameter(row: Json) -> Json:
    bounds = {key: row["schema"][key] for key in BOUNDS if key in row["schema"]}
    return {"name": row["name"], "in": row["in"], "required": row.get("required", False), **bounds}


def _contents(meaning: Meaning, given: Json) -> dict[str, str]:
    return {media: meaning.digest(content.get("schema")) for media, content in given.get("content", {}).items()}


def _rubric_schema() -> str:
    schema = json.loads((DATA.parents[1] / "rubrics" / "schema.json").read_text("utf-8"))
    return Meaning(schema.pop("$defs"), "#/$defs/").digest(schema)


def _keys() -> dict[str, list[str]]:
    """Some keys of each judge: of cases that ask it, and of a rubric that asks it of any trace."""
    found: dict[str, list[str]] = {name: [] for name in judge_levels()}
    for judge, key in _all_keys():
        if len(found[judge]) < KEYS and key not in found[judge]:
            found[judge].append(key)
    assert all(found.values()), found
    return found


def _all_keys() -> Iterator[tuple[str, str]]:
    bodies = [body for name, body in read_cases().items() if name.startswith(("demo", "same", "wrong", "critic: 7"))]
    for body in bodies:
        yield from cache_keys({**body, "rubric": "four_step"})
    for name in judge_levels():
        check = {"kind": "judge", "judge": name}
        rubric = {"id": "one", "criteria": [{"id": "it", "stage": "arguments", "check": check}]}
        asked = ({"trace": body["trace"], "rubric": rubric} for body in bodies)
        yield from islice((pair for body in asked for pair in cache_keys(body)), KEYS)


def _metrics(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        if line.startswith("# TYPE callgrade_"):
            _, _, name, kind = line.split()
            if not name.endswith("_created"):  # which the library adds
                yield name, kind


RECORDS = (
    {"messages": [], "expected": {"calls": "none"}},
    {"messages": [], "expected": {"calls": "some"}},
    {"messages": [], "rubric": "nobody_knows"},
    {"messages": 1},
)


def _junit() -> list[str]:
    """The lines of the file about some records, the last of which is no JSON; what takes time takes a millisecond."""
    text = "\n".join([*map(json.dumps, RECORDS), "{"])
    with TemporaryDirectory() as folder, bare(CALLGRADE_HOME=folder), chdir(folder), redirect_stderr(StringIO()):
        Path("a.jsonl").write_text(text, "utf-8")
        run_command("score", "a.jsonl", "--judges", "off", "--format", "junit", "--output", "a.xml")
        return re.sub(r"(?<= time=\")[\d.]+", "0.001", Path("a.xml").read_text("utf-8")).splitlines()


@contextmanager
def bare(**more: str) -> Iterator[None]:
    """The environment without settings but these."""
    before = dict(os.environ)
    for name in [name for name in before if name.startswith("CALLGRADE_")]:
        del os.environ[name]
    os.environ.update(more)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _commands(command: Json, path: str) -> Iterator[tuple[str, Json]]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    told = {f"argument {n} {one.human_readable_name}": _parsed(one) for n, one in enumerate(arguments, start=1)}
    options = [one for one in command.params if one.param_type_name == "option"]
    yield path, told | {", ".join([*one.opts, *one.secondary_opts]): _parsed(one) for one in options}
    for name, child in getattr(command, "commands", {}).items():
        yield from _commands(child, f"{path} {name}")


def _parsed(parameter: Json) -> Json:
    told = {"type": _type(parameter.type), "required": parameter.required, "default": _default(parameter.default)}
    told |= {key: value for key in FORMS if (value := getattr(parameter, key, None))}
    told |= {key: value for key in ("min", "max") if (value := getattr(parameter.type, key, None)) is not None}
    choices: Iterable[Any] = getattr(parameter.type, "choices", ())
    return told | ({"choices": [str(one) for one in choices]} if choices else {})


def _type(given: Json) -> str:
    """The name of a type of click's; what a function of ours reads is text."""
    return "text" if hasattr(given, "func") else given.name


def _default(value: Json) -> Json:
    if callable(value):
        return "worked out"
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
