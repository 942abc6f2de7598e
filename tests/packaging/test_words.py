"""One name, one thing: no two public classes of the service share a name."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SERVICE = Path(__file__).parents[2] / "service"


def test_class_names() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for file in SERVICE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{file.relative_to(SERVICE.parent)}:{node.lineno}")
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
