"""A member of foreign JSON is looked up in a set or a mapping only once it is known to be a text.

`raw.get("type") in KINDS` raises TypeError if somebody sends a list there. `service.core.json.members` reads a member as
a text or as the name of its type; a tuple compares and hashes nothing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

SERVICE = Path(__file__).parents[2] / "service"

Function = ast.FunctionDef | ast.AsyncFunctionDef
HASHED_TYPES = ("frozenset", "set", "dict", "Mapping", "Counter", "KeysView", "Set")
JSON_TYPES = ("Json", "Loose", "object", "Any")
HASHABLE = ("str", "int", "Hashable")


class Known(NamedTuple):
    """What names mean everywhere: constants that hash what is looked up in them, functions that return JSON or lists of it."""

    hashed: Mapping[str, bool]
    returning: frozenset[str]
    listing: frozenset[str]
    aliases: Mapping[str, str]
    """Names of types, and what they stand for."""

    def spell(self, annotation: str) -> str:
        """Write an annotation without aliases."""
        return re.sub(r"\w+", lambda name: self.aliases.get(name[0], name[0]), annotation)


def name_call(value: ast.expr) -> str:
    """Return the name of the function or method that an expression calls; "" if it calls none."""
    if not isinstance(value, ast.Call):
        return ""
    return value.func.attr if isinstance(value.func, ast.Attribute) else getattr(value.func, "id", "")


def is_hash_display(value: ast.expr, hashed: Mapping[str, bool]) -> bool:
    """Whether an expression makes a set, a mapping or the keys of one."""
    if isinstance(value, ast.BinOp):
        return is_hash_display(value.left, hashed) or is_hash_display(value.right, hashed)
    if isinstance(value, ast.Call):
        return name_call(value) in ("frozenset", "set", "dict", "keys", "union", "Counter")
    if isinstance(value, ast.Name | ast.Attribute):
        name = value.id if isinstance(value, ast.Name) else value.attr
        return hashed.get(name, name.isupper())
    return isinstance(value, ast.Set | ast.SetComp | ast.Dict | ast.DictComp)


def list_targets(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None, str]]:
    """List what a statement or a walrus binds: the target, the value, the annotation."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            yield from [(one, value, "") for one, value in pairs]
    elif isinstance(node, ast.AnnAssign):
        yield node.target, node.value, ast.unparse(node.annotation)
    elif isinstance(node, ast.NamedExpr):
        yield node.target, node.value, ""
    elif isinstance(node, ast.arg) and node.annotation is not None:
        yield ast.Name(node.arg), None, ast.unparse(node.annotation)


def learn(trees: Mapping[str, ast.Module]) -> Known:
    hashed: dict[str, bool] = {}
    returning: set[str] = set()
    aliases: dict[str, str] = {}
    listing: set[str] = set()
    for tree in trees.values():
        for node in tree.body:
            for target, value, annotation in list_targets(node):
                if isinstance(target, ast.Name) and isinstance(value, ast.Subscript) and not target.id.isupper():
                    aliases[target.id] = ast.unparse(value)
                elif isinstance(target, ast.Name) and value is not None:
                    made = annotation.startswith(HASHED_TYPES) or is_hash_display(value, hashed)
                    hashed[target.id] = made or hashed.get(target.id, False)
        for node in ast.walk(tree):
            returned = ast.unparse(node.returns) if isinstance(node, Function) and node.returns is not None else ""
            if returned == "JsonValue" and isinstance(node, Function):
                returning.add(node.name)
            elif returned.endswith("[JsonValue]") and isinstance(node, Function):
                listing.add(node.name)
    return Known(hashed, frozenset(returning), frozenset(listing), aliases)


class Scope:
    """What the names of one function are bound to."""

    def __init__(self, function: Function, known: Known) -> None:
        self.function = function
        self.known = known
        self.types: dict[str, str] = {}
        self.foreign: set[str] = set()
        self.hashed = dict(known.hashed)
        nodes = list(ast.walk(function))
        for node in sorted(nodes, key=lambda node: not isinstance(node, ast.arg)):  # what is given comes first
            self._bind(node)

    def _bind(self, node: ast.AST) -> None:
        for target, value, given in list_targets(node):
            if isinstance(target, ast.Name):
                annotation = self.types[target.id] = self.known.spell(given)
                self.hashed[target.id] = annotation.startswith(HASHED_TYPES) or (
                    value is not None and is_hash_display(value, self.hashed)
                )
                if annotation.startswith("JsonValue") or (value is not None and self.is_foreign(value)):
                    self.foreign.add(target.id)
        if isinstance(node, ast.For | ast.comprehension):
            targets = node.target.elts[1:] if isinstance(node.target, ast.Tuple) else [node.target]
            names = [one.id for one in targets if isinstance(one, ast.Name)]
            if name_call(node.iter) in {"items", "values", *self.known.listing} or self.is_foreign(node.iter):
                self.foreign |= set(names)
            over = node.iter
            over = over.args[0] if isinstance(over, ast.Call) and name_call(over) == "enumerate" else over
            for one in ast.walk(over) if not isinstance(over, ast.Call) else ():
                if isinstance(one, ast.Name) and self.types.get(one.id):
                    self.types.update(dict.fromkeys(names, self.types[one.id]))

    def is_foreign(self, value: ast.expr) -> bool:
        """Whether an expression may be any JSON."""
        if isinstance(value, ast.Name):
            return value.id in self.foreign
        if isinstance(value, ast.NamedExpr):
            return self.is_foreign(value.value)
        if isinstance(value, ast.IfExp):
            return self.is_foreign(value.body) or self.is_foreign(value.orelse)
        if isinstance(value, ast.BoolOp):
            return any(map(self.is_foreign, value.values))
        if isinstance(value, ast.Subscript):
            return isinstance(getattr(value.slice, "value", None), str) and self._holds_json(value.value)
        if not isinstance(value, ast.Call):
            return False
        if isinstance(value.func, ast.Name) and value.func.id == "next" and value.args:
            inner = value.args[0]
            return isinstance(inner, ast.GeneratorExp) and self.is_foreign(inner.elt)
        name = name_call(value)
        if name == "get" and isinstance(value.func, ast.Attribute):
            return self._holds_json(value.func.value)
        return name in self.known.returning

    def _holds_json(self, holder: ast.expr) -> bool:
        """Whether a value is an object of foreign JSON, as far as its annotation tells."""
        if isinstance(holder, ast.Dict) or (isinstance(holder, ast.Name) and holder.id.isupper()):
            return False
        kind = self.types.get(holder.id, "") if isinstance(holder, ast.Name) else ""
        return not kind or any(name in kind for name in JSON_TYPES)


def is_text_test(test: ast.AST, value: str, *, holds: bool = True) -> bool:
    """Whether a condition says that a value is a text (`holds`), or that it is none."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) and holds:
        return any(is_text_test(one, value) for one in test.values)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return is_text_test(test.operand, value, holds=not holds)
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) and not holds:
        return any(is_text_test(one, value, holds=False) for one in test.values)
    if not isinstance(test, ast.Call) or ast.unparse(test.func) != "isinstance" or not holds:
        return False
    tested = test.args[0].target if isinstance(test.args[0], ast.NamedExpr) else test.args[0]
    return ast.unparse(tested) == value and ast.unparse(test.args[1]) in HASHABLE


def list_conditions(node: ast.AST, at: ast.Compare) -> Iterator[tuple[ast.expr, bool]]:
    """List what holds (or does not) at a comparison because of a statement or an expression around or before it."""
    leaves = isinstance(node, ast.If) and isinstance(node.body[-1], ast.Return | ast.Continue | ast.Raise)
    if leaves and (node.end_lineno or 0) < at.lineno:
        yield node.test, False
    if isinstance(node, ast.If | ast.IfExp):
        if any(holds(part, at) for part in (node.body if isinstance(node, ast.If) else [node.body])):
            yield node.test, True
    elif isinstance(node, ast.BoolOp) and holds(node, at):
        yield from [(one, isinstance(node.op, ast.And)) for one in node.values if not holds(one, at)]
    elif isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp) and holds(node, at):
        yield from [(test, True) for one in node.generators for test in one.ifs if not holds(test, at)]


def holds(node: ast.AST, at: ast.AST) -> bool:
    return any(one is at for one in ast.walk(node))


def is_guarded(scope: Scope, at: ast.Compare, value: str) -> bool:
    """Whether what is looked up is known to be a text there."""
    conditions = [one for node in ast.walk(scope.function) for one in list_conditions(node, at)]
    return any(is_text_test(test, value, holds=true) for test, true in conditions)


def list_lookups(tree: ast.Module, known: Known) -> Iterator[int]:
    """List the lines where a member of any type is looked up by its hash."""
    for function in ast.walk(tree):
        if not isinstance(function, Function):
            continue
        lookups = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn)
        ]
        scope = Scope(function, known) if lookups else None
        for node in lookups if scope else ():
            if is_hash_display(node.comparators[0], scope.hashed) and scope.is_foreign(node.left):
                left = node.left.target if isinstance(node.left, ast.NamedExpr) else node.left
                if not is_guarded(scope, node, ast.unparse(left)):
                    yield node.lineno


def read_trees(*files: Path) -> dict[str, ast.Module]:
    return {str(file.relative_to(SERVICE.parent)): ast.parse(file.read_bytes()) for file in files}


def test_no_member_of_any_type_is_hashed() -> None:
    trees = read_trees(*SERVICE.rglob("*.py"))
    known = learn(trees)
    found = [f"{name}:{line}" for name, tree in trees.items() for line in dict.fromkeys(list_lookups(tree, known))]
    assert found == []


LOOKUPS = [
    ('def f(raw: JsonObject): return raw.get("type") in KINDS', True),
    ('def f(raw: JsonObject): return raw["type"] not in {"a", "b"}', True),
    ('def f(raw: JsonObject):\n    kind, text = raw.get("type"), ""\n    return kind in KINDS', True),
    ('def f(raw): return [part for part in raw if part.get("type") in KINDS]', True),
    ("def f(raw: JsonObject): return [name for name, value in raw.items() if value in KINDS]", True),
    ("def f(value: JsonValue, seen: set[str]): return value in seen", True),
    ("def f(raw: JsonObject): return [one for one in list_items(raw) if one in KINDS]", True),
    ('def f(raw: JsonObject): return raw.get("type") in ("a", "b")', False),
    ('def f(raw: JsonObject): return find_text(raw, "type") in KINDS', False),
    ("def f(value: JsonValue): return isinstance(value, str) and value in KINDS", False),
    (
        "def f(value: JsonValue):\n    if not isinstance(value, str):\n        return False\n    return value in KINDS",
        False,
    ),
    ("def f(parts: list[Part]): return [part for part in parts if part['type'] in KINDS]", False),
    ("def f(raw: JsonObject): return [name for name, value in raw.items() if name in KINDS]", False),
]


@pytest.mark.parametrize(("source", "found"), LOOKUPS)
def test_what_counts_as_a_lookup(source: str, found: bool) -> None:
    tree = ast.parse(f"KINDS = frozenset()\ndef list_items(raw) -> list[JsonValue]: ...\n{source}")
    assert bool(list(list_lookups(tree, learn({"": tree})))) == found
