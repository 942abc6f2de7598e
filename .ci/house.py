"""The sizes that the house is held to: `python .ci/house.py` fails where one is passed, `--table` shows them all.

`house.toml` beside this file has the numbers. Raising one is a decision: its commit message says why. Lowering one follows
what was cut.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HOUSE = "service"
SHORT_MODULE, SHORT_FUNCTION = 40, 6


@dataclass(frozen=True)
class Module:
    """A source file: its path from the root, its lines, and what they parse to."""

    path: str
    lines: tuple[str, ...]
    tree: ast.Module

    @property
    def folder(self) -> str:
        """The folder that it is in."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The dotted name that others import it by."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def read_modules(root: Path, top: str) -> tuple[Module, ...]:
    """Read all source files below a folder of the root, in the order of their paths."""
    found: list[Module] = []
    for path in sorted((root / top).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        found.append(Module(path.relative_to(root).as_posix(), tuple(text.splitlines()), ast.parse(text)))
    return tuple(found)


def count_rooms(modules: Sequence[Module], rooms: Mapping[str, int]) -> dict[str, int]:
    """Count the lines of each room: a file belongs to the longest room that its path begins with."""
    lines = dict.fromkeys(rooms, 0)
    for module in modules:
        within = [room for room in rooms if module.path == room or module.path.startswith(f"{room}/")]
        lines[max(within, key=len)] += len(module.lines)
    return lines


def list_long_files(modules: Sequence[Module], most: int) -> list[str]:
    """List the files of more lines than a chapter may have."""
    return [f"{one.path}: {len(one.lines)} lines" for one in modules if len(one.lines) > most]


def list_full_folders(modules: Sequence[Module], most: int, discovered: Sequence[str]) -> list[str]:
    """List the folders of more files than a reader keeps in mind; a file of a discovered kind is found by its kind."""
    counts = Counter(one.folder for one in modules if one.folder not in discovered)
    return [f"{folder}: {count} files" for folder, count in sorted(counts.items()) if count > most]


def list_private_names(modules: Sequence[Module]) -> list[str]:
    """List where a name that a dependency keeps to itself is imported, read, or waved through the type checker."""
    return [f"{one.path}:{line}: {name}" for one in modules for line, name in sorted(_find_private(one))]


def _find_private(module: Module) -> Iterator[tuple[int, str]]:
    imports = [(node, path, bound) for node, path, bound in _iter_imports(module) if _is_foreign(path)]
    for node, path, _ in imports:
        if any(part.startswith("_") for part in path.split(".")):
            yield node.lineno, path
    foreign = {bound for _, _, bound in imports}
    for node in ast.walk(module.tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in foreign):
            continue
        if node.attr.startswith("_") and not node.attr.endswith("__"):
            yield node.lineno, f"{node.value.id}.{node.attr}"
    for number, line in enumerate(module.lines, 1):
        if "reportPrivateUsage" in line:
            yield number, "reportPrivateUsage"


def _iter_imports(module: Module) -> Iterator[tuple[ast.Import | ast.ImportFrom, str, str]]:
    """Each name that is imported: where, its dotted path, and what it is called here."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name, alias.asname or alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield node, f"{node.module}.{alias.name}", alias.asname or alias.name


def _is_foreign(path: str) -> bool:
    return path.partition(".")[0] not in {HOUSE, "__future__", *sys.stdlib_module_names}


def list_doubled_names(modules: Sequence[Module], discovered: Sequence[str]) -> list[str]:
    """List the public classes and functions of modules that stand for several things."""
    places: dict[str, list[str]] = {}
    for module in modules:
        for node in module.tree.body:
            if (
                isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
                and not node.name.startswith("_")
                and (isinstance(node, ast.ClassDef) or module.folder not in discovered)
                and "overload" not in map(ast.unparse, node.decorator_list)
            ):
                places.setdefault(node.name, []).append(module.path)
    return [f"{name}: {', '.join(paths)}" for name, paths in sorted(places.items()) if len(paths) > 1]


def list_crumbs(modules: Sequence[Module], discovered: Sequence[str]) -> list[str]:
    """List the short modules that one neighbour alone imports: each is a part of that neighbour."""
    importers: dict[str, set[str]] = {}
    for module in modules:
        for node, path, _ in _iter_imports(module):
            for name in {path, getattr(node, "module", None) or path}:
                importers.setdefault(name, set()).add(module.path)
    crumbs: list[str] = []
    for module in modules:
        if len(module.lines) >= SHORT_MODULE or module.folder in discovered or module.path.endswith("__init__.py"):
            continue
        by = importers.get(module.name, set()) - {module.path}
        if len(by) == 1 and (only := next(iter(by))).rpartition("/")[0] == module.folder:
            crumbs.append(f"{module.path}: only {only}")
    return crumbs


def list_confetti(modules: Sequence[Module]) -> list[str]:
    """List the short functions that are named at one place: each reads better where it is used."""
    named: Counter[str] = Counter()
    defined: list[tuple[str, str]] = []
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name):
                named[node.id] += 1
            elif isinstance(node, ast.Attribute):
                named[node.attr] += 1
            elif isinstance(node, ast.ImportFrom):
                named.update(alias.name for alias in node.names)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                size = (node.end_lineno or node.lineno) - node.body[0].lineno + 1
                if size < SHORT_FUNCTION and not node.decorator_list and not node.name.endswith("__"):
                    defined.append((node.name, f"{module.path}:{node.lineno}: {node.name}"))
    return [place for name, place in defined if named[name] == 1]


def check(root: Path, numbers: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Check the house: the faults, and a line for each figure beside what it may be."""
    modules = read_modules(root, HOUSE)
    most, discovered = numbers["most"], numbers["discovered"]
    faults: list[str] = []
    table: list[str] = []

    def hold(what: str, count: int, limit: int, places: Sequence[str] = ()) -> None:
        table.append(f"{what:44} {count:7,} of {limit:7,}")
        if count > limit:
            faults.append(f"{what}: {count}, and {limit} is what .ci/house.toml allows")
            faults.extend(f"  {place}" for place in places)

    rooms = numbers["rooms"]
    for room, lines in count_rooms(modules, rooms).items():
        hold(room, lines, rooms[room])
    hold("all of it", sum(len(one.lines) for one in modules), most["lines"])
    tests = read_modules(root, "tests")
    hold("tests", sum(len(one.lines) for one in tests), most["test_lines"])
    lists: dict[str, Callable[[], list[str]]] = {
        "files of more than 400 lines": lambda: list_long_files(modules, 400),
        "folders of more than 24 files": lambda: list_full_folders(modules, 24, discovered),
        "private names of dependencies": lambda: list_private_names(modules),
        "names for several things": lambda: list_doubled_names(modules, discovered),
        "short modules of one neighbour": lambda: list_crumbs(modules, discovered),
        "short functions named at one place": lambda: list_confetti(modules),
    }
    for what, find in lists.items():
        places = find()
        hold(what, len(places), most[what.replace(" ", "_")], places)
    return faults, table


def main() -> int:
    """Print what passes its number, or with `--table` every figure."""
    numbers = tomllib.loads(Path(__file__).with_name("house.toml").read_text(encoding="utf-8"))
    faults, table = check(ROOT, numbers)
    print("\n".join(table if "--table" in sys.argv[1:] else faults or ["The house keeps its sizes."]))  # noqa: T201
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
