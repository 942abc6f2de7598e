"""Validate arguments against the JSON Schema of their tool, safely for schemas and arguments of any origin.

Nothing is fetched, patterns run in linear time, and the work is bounded before it begins. Tool schemas are read as providers
read them: JSON Schema of any draft since 4, OpenAPI 3.0, and the type names of Gemini, BFCL, Python, Java and JavaScript.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

import jsonschema_rs as rs
from pydantic import JsonValue

from service.core.json.values import name_type
from service.core.json.walk import is_deeper_than
from service.core.schemas.cost import BYTES_OF_A_LEVEL, ValidationCost, count_patterns, measure_size
from service.core.schemas.dialects import DRAFTS, REF_ALONE_DRAFTS, Dialect, choose_dialect
from service.core.schemas.references import References
from service.core.schemas.tree import Node, SchemaProblem, is_node, iter_in_place
from service.core.schemas.wording import (
    Violation,
    cut_message,
    explain_unusable,
    find_surrogate,
    make_sort_key,
    read_violations,
)
from service.core.work_limits import COST_OF_A_VIOLATION, UNBOUNDED, Meter

__all__ = ["Dialect", "SchemaProblem", "Validator", "Violation", "build_validator"]

MAX_BYTES = 64_000
"""The largest schema, as compact JSON."""
MAX_SCHEMA_DEPTH = 32
MAX_DEPTH = 64
"""Levels of arrays and objects in a value. jsonschema-rs overflows the stack somewhere beyond 20,000."""
MAX_VIOLATIONS = 100
MAX_PATTERNS = 64

# Time linear in the text is still slow where a counted repetition makes many states. So the compiled size of patterns is
# limited, and the patterns of a schema share the limit: (bytes for all, least bytes for one, units for each character).
# The worst pattern found took 1.5 µs a character at the first size, which nearly all schemas fit, and 110 at the second.
_PATTERN_SIZES = ((64 << 10, 8 << 10, 75), (512 << 10, 32 << 10, 5_500))
_PATTERN_CACHES = 4 << 20
_MAX_KEY_BYTES = 8 * MAX_BYTES


_OBJECTS = (dict, Mapping)  # dict first: its check is fast, that of the abstract class slow


def _limit_violations(violations: Sequence[Violation], meter: Meter) -> tuple[Violation, ...]:
    """Charge the budget for each violation; return the first MAX_VIOLATIONS, and one that counts the rest."""
    meter.spend("comparisons", COST_OF_A_VIOLATION * len(violations))
    if len(violations) <= MAX_VIOLATIONS:
        return tuple(violations)
    rest = len(violations) - MAX_VIOLATIONS
    return (*violations[:MAX_VIOLATIONS], Violation("schema", f"and {rest} more", ""))


class Validator:
    """A compiled schema. Get one from `build_validator`."""

    def __init__(self, compiled: rs.Validator, *, cost: ValidationCost | None, surface: Surface) -> None:
        self._compiled = compiled
        self._cost = cost
        self._surface = surface
        self._name_matcher = _build_name_matcher(surface.patterns)
        self.properties = surface.properties
        """The names declared at the top level, in any branch; None where there are none or they cannot all be known."""
        self.required = surface.required
        """The names that every value must have."""
        self.defaults = surface.defaults
        """The default of each top-level property that has one."""

    def find_undeclared(self, instance: JsonValue | Mapping[str, JsonValue]) -> tuple[str, ...]:
        """Return the top-level names of `instance` that the schema does not declare, sorted.

        It finds some only for a schema that says nothing about further properties. One that sets `additionalProperties` or
        `unevaluatedProperties` does, and a breach of these is a violation.
        """
        declared = self._surface.properties
        if declared is None or not self._surface.silent or not isinstance(instance, _OBJECTS):
            return ()
        if declared.issuperset(instance):
            return ()
        unknown = [name for name in instance if name not in declared and not self._matches_pattern(name)]
        return tuple(sorted(unknown))

    def list_violations(
        self, instance: JsonValue | Mapping[str, JsonValue], meter: Meter | None = None
    ) -> tuple[Violation, ...]:
        """List every way in which `instance` does not fit, sorted by place; () if it fits.

        Lists at most 100, and then one more that counts the rest; where listing them all would cost too much, one for the
        whole. A value nested in more than 64 levels violates "depth", a lone surrogate that the schema must read violates
        "encoding". Raises SchemaProblem where schema and value together ask for too much work: that takes a schema made for
        it, or a very large value.

        `meter` limits the work, in comparisons; OverBudgetError beyond. Without it, only the limits of one schema and value
        apply.
        """
        meter = meter or Meter(UNBOUNDED)
        value = instance if isinstance(instance, dict) else _convert_mapping(instance)
        size = measure_size(value)
        if size > MAX_DEPTH * BYTES_OF_A_LEVEL and is_deeper_than(value, MAX_DEPTH):
            return _limit_violations([Violation("depth", f"nested in more than {MAX_DEPTH} levels", "")], meter)
        if self._cost is not None:
            comparisons, allowed = self._cost.measure(value, size)
            meter.spend("comparisons", comparisons)
            if not allowed:
                raise SchemaProblem("its references, lists or patterns ask for too much work on this value")
        try:
            fits = self._compiled.is_valid(value)
            return () if fits else _limit_violations(self._list_all(value, size, meter), meter)
        except UnicodeEncodeError:
            path = find_surrogate(value)
            return _limit_violations([Violation("encoding", "not Unicode text: a lone surrogate", path)], meter)

    def _list_all(self, value: JsonValue, size: float, meter: Meter) -> list[Violation]:
        comparisons = 0 if self._cost is None else self._cost.measure_listing(value, size)
        if comparisons is None or not meter.can_afford("comparisons", comparisons):
            return [Violation("schema", "does not fit the schema; too large to list every place", "")]
        meter.spend("comparisons", comparisons)
        distinct = {each for error in self._compiled.iter_errors(value) for each in read_violations(error)}
        return sorted(distinct, key=make_sort_key)

    def _matches_pattern(self, name: str) -> bool:
        try:
            return self._name_matcher is not None and not self._name_matcher.is_valid({name: None})
        except UnicodeEncodeError:
            return False


def build_validator(
    schema: Mapping[str, JsonValue] | bool | None,  # noqa: FBT001 (a schema may be a boolean)
    *,
    dialect: Dialect = "auto",
    formats: bool = True,
) -> Validator:
    """Compile a schema; None, like {} and true, accepts anything. The 512 last used are cached.

    `formats`: whether `format` is asserted; an unknown format never is. Raises SchemaProblem for a schema that cannot be used:
    one that breaks its own draft, has an unknown type, a reference that leads outside or in circles, a pattern that the
    linear-time engine does not accept, or more than 64,000 bytes or 32 levels.

    >>> check = build_validator({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
    >>> check.list_violations({"n": 1}), check.find_undeclared({"n": 1, "m": 2})
    ((), ('m',))
    >>> [f"{each.path} {each.message}" for each in (*check.list_violations({"n": "1"}), *check.list_violations({}))]
    ['/n expected integer, found "1"', '/n required, and missing']
    """
    result = _compile_key(_make_key(schema), dialect=dialect, formats=formats)
    if isinstance(result, Validator):
        return result
    raise SchemaProblem(result.message, result.path)


def _convert_mapping(instance: JsonValue | Mapping[str, JsonValue]) -> JsonValue:
    return dict(instance) if isinstance(instance, _OBJECTS) else instance


def _make_key(schema: JsonValue | Mapping[str, JsonValue]) -> bytes:
    """Return the schema as bytes, the same for the same JSON in the same order; marshal is by far the fastest way to them."""
    if not isinstance(schema, dict):
        schema = _read_schema(schema)
    try:
        key = marshal.dumps(schema, 2)
    except ValueError:
        raise SchemaProblem(f"not made of JSON values, or nested in more than {MAX_SCHEMA_DEPTH} levels") from None
    if len(key) > _MAX_KEY_BYTES:
        raise SchemaProblem(f"larger than {MAX_BYTES} bytes")
    return key


def _read_schema(schema: JsonValue | Mapping[str, JsonValue]) -> JsonValue:
    if schema is None or isinstance(schema, bool):
        return schema is not False
    if isinstance(schema, Mapping):
        return dict(schema)
    raise SchemaProblem(f"a schema is an object or a boolean, not {name_type(schema)}")


@lru_cache(maxsize=512)
def _compile_key(key: bytes, *, dialect: Dialect, formats: bool) -> Validator | SchemaProblem:
    try:
        return _compile(_copy_document(key), dialect=dialect, formats=formats)
    except SchemaProblem as problem:
        return problem


def _copy_document(key: bytes) -> JsonValue:
    """Return a copy of the schema that may be rewritten."""
    schema: JsonValue = marshal.loads(key)  # noqa: S302 (the bytes come from _make_key)
    if is_deeper_than(schema, MAX_SCHEMA_DEPTH):
        raise SchemaProblem(f"nested in more than {MAX_SCHEMA_DEPTH} levels")
    try:
        text = json.dumps(schema, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode()
    except (TypeError, ValueError):
        raise SchemaProblem("not made of JSON values") from None
    if len(text) > MAX_BYTES:
        raise SchemaProblem(f"larger than {MAX_BYTES} bytes: {len(text)}")
    return json.loads(text)


def _compile(document: JsonValue, *, dialect: Dialect, formats: bool) -> Validator:
    if not is_node(document):
        return Validator(rs.Draft202012Validator(document is True), cost=None, surface=OPAQUE)
    dialect = choose_dialect(document, dialect)
    references = References(document, dialect=dialect)
    patterns = sum(count_patterns(node) for node in references)
    if patterns > MAX_PATTERNS:
        raise SchemaProblem(f"{patterns} patterns; at most {MAX_PATTERNS} are taken")
    compiled, per_character = _compile_smallest(document, dialect, patterns=patterns, formats=formats)
    cost = ValidationCost(references, per_character=per_character)
    return Validator(compiled, cost=cost, surface=find_surface(references, dialect))


def _compile_smallest(schema: Node, dialect: Dialect, *, patterns: int, formats: bool) -> tuple[rs.Validator, int]:
    """Compile with the smallest size limit that its patterns fit; return also the cost of a character at that size."""
    problem = SchemaProblem("cannot be compiled")
    for total, least, per_character in _PATTERN_SIZES:
        options = _build_pattern_options(max(least, total // max(1, patterns)), patterns=patterns)
        try:
            build = DRAFTS[dialect]
            return build(
                schema, validate_formats=formats, retriever=_refuse_fetch, pattern_options=options
            ), per_character
        except rs.ValidationError as error:
            problem = SchemaProblem(*explain_unusable(error))
        except ValueError as error:
            problem = SchemaProblem(cut_message(f"cannot be compiled: {error}"))
        if not patterns:
            break
    raise problem


def _build_pattern_options(size: int, *, patterns: int) -> rs.RegexOptions:
    cache = max(256 << 10, _PATTERN_CACHES // max(1, patterns))
    return rs.RegexOptions(size_limit=size, dfa_size_limit=cache)


def _refuse_fetch(uri: str) -> Node:
    raise ValueError(f"{uri} is not fetched")


def _build_name_matcher(patterns: tuple[str, ...]) -> rs.Validator | None:
    """Build a schema that an object fails if one of its names matches one of the patterns, which have compiled before."""
    if not patterns:
        return None
    schema: Node = {"patternProperties": dict.fromkeys(patterns, False)}
    options = _build_pattern_options(_PATTERN_SIZES[-1][0], patterns=len(patterns))
    return rs.Draft202012Validator(schema, pattern_options=options)


_OPEN = ("additionalProperties", "unevaluatedProperties")
_UNFOLLOWED = ("$dynamicRef", "$recursiveRef")


@dataclass(frozen=True, slots=True)
class Surface:
    """The top-level properties of a schema, with local references and combinators followed.

    `properties`: every name declared in any branch; None where the schema declares none or may declare more elsewhere.
    `required`: the names that every value must have. `defaults`: the `default` of each property that certainly applies.
    `patterns`: the expressions of `patternProperties`. `silent`: the schema declares properties and says nothing about further
    ones.
    """

    properties: frozenset[str] | None = None
    required: frozenset[str] = frozenset()
    defaults: Mapping[str, JsonValue] = field(default_factory=lambda: MappingProxyType(dict[str, JsonValue]()))
    patterns: tuple[str, ...] = ()
    silent: bool = False


OPAQUE = Surface()


def find_surface(references: References, dialect: Dialect) -> Surface:
    """Collect the surface of a whole schema."""
    possible = list(_iter_reached(references, dialect, certain=False))
    certain = list(_iter_reached(references, dialect, certain=True))
    declaring = [node["properties"] for node in possible if isinstance(node.get("properties"), dict)]
    known = bool(declaring) and not any(key in node for node in possible for key in _UNFOLLOWED)
    return Surface(
        properties=frozenset(name for each in declaring if isinstance(each, dict) for name in each) if known else None,
        required=frozenset(name for node in certain for name in _list_names(node.get("required"))),
        defaults=MappingProxyType({name: value for node in reversed(certain) for name, value in _iter_defaults(node)}),
        patterns=tuple(name for node in possible for name in _list_names(node.get("patternProperties"))),
        silent=known and not any(key in node for node in possible for key in _OPEN),
    )


def _iter_reached(references: References, dialect: Dialect, *, certain: bool) -> Iterator[Node]:
    """Yield the schema objects that look at the whole value; `certain`: only those that every value must satisfy."""
    waiting, seen = [references.root], set[int]()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        targets = references.find_targets(node)
        if dialect in REF_ALONE_DRAFTS and targets:
            waiting.extend(targets)
            continue
        yield node
        waiting.extend(reversed([*targets, *(_list_all_of(node) if certain else iter_in_place(node))]))


def _list_all_of(node: Node) -> list[Node]:
    parts = node.get("allOf")
    return [part for part in parts if is_node(part)] if isinstance(parts, list) else []


def _list_names(value: JsonValue) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list | dict) else []


def _iter_defaults(node: Node) -> Iterator[tuple[str, JsonValue]]:
    declared = node.get("properties")
    for name, each in declared.items() if isinstance(declared, dict) else ():
        if is_node(each) and "default" in each:
            yield name, each["default"]
