"""Open tagged unions: a class that names its `kind` joins the union of its base, with no registry to keep.

`Annotated[Critic, TaggedUnion()]` is, to pydantic, the discriminated union of every subclass of `Critic` that has a `kind`.
The union is built when the enclosing model is first used (`defer_build`), so a kind may be declared after a composite
that nests it; `core/rubric_extension.py` uses every union and thereby closes the set.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from textwrap import dedent
from typing import Annotated, Any, TypeVar, Union, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, Strict
from pydantic_core import CoreSchema

from service.core.models.light import lazy

K = TypeVar("K", bound=BaseModel)
T = TypeVar("T")

Several = Annotated[tuple[T, ...], Strict(False)]
"""A JSON array, stored as a tuple. Only the container is lenient (it accepts a list); its items stay strict."""


def _require_items(items: tuple[T, ...]) -> tuple[T, ...]:
    if not items:
        raise ValueError("expected at least 1 item")
    return items


Some = Annotated[tuple[T, ...], Strict(False), AfterValidator(_require_items), Field(json_schema_extra={"minItems": 1})]
"""An array with at least one item. (Pydantic's own minimum length would add an error beside every wrong item.)"""


DEFERRED = ConfigDict(defer_build=True)
"""For a TypeAdapter of something that is no model: build the validator when it is first used."""


class FrozenModel(BaseModel):
    """The base of what users write: immutable, no unknown keys, no type coercion, no NaN."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        defer_build=True,
        ser_json_inf_nan="strings",
        ignored_types=(lazy,),
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Add each field's docstring to the schema. Pydantic itself would read them from the source at every start."""
        described = handler(schema)
        members: dict[str, dict[str, Any]] = handler.resolve_ref_schema(described).get("properties", {})
        for name, text in read_descriptions(cls).items():
            field = cls.model_fields.get(name)
            if field is not None and (field.alias or name) in members:
                members[field.alias or name].setdefault("description", text)
        return described


@cache
def read_descriptions(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the docstrings of a model's fields, by field name."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if issubclass(cls, FrozenModel) and cls is not FrozenModel:
            own = read_texts(cls)
            found = {name: text for name, text in found.items() if name not in cls.__annotations__} | own
    return found


def read_texts(cls: type) -> dict[str, str]:
    """Read the docstrings right below the fields in a class's source; empty if there is no source."""
    try:
        (node,) = ast.parse(dedent(inspect.getsource(cls))).body
    except OSError:
        return {}
    lines = node.body if isinstance(node, ast.ClassDef) else []
    return {
        field.target.id: inspect.cleandoc(below.value.value)
        for field, below in pairwise(lines)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    }


def list_kinds(base: type[K], tag: str = "kind") -> dict[str, type[K]]:
    """Return every concrete subclass of `base`, by the name in its `tag`.

    Raises TypeError for two classes with the same name, and for a class without a name that no other class extends and that
    extends none with a name.
    """
    found: dict[str, type[K]] = {}
    for cls in list_subclasses(base):
        name = find_kind(cls, tag)
        if name is None:
            inherits = any(issubclass(one, base) and tag in one.model_fields for one in cls.__bases__)
            if not cls.__subclasses__() and not inherits:
                raise TypeError(f'{cls.__qualname__} has no name by which it is found: {tag}: Literal["..."] = "..."')
        elif found.setdefault(name, cls) is not cls:
            raise TypeError(f"two {base.__name__} kinds are named {name!r}: {found[name].__name__} and {cls.__name__}")
    return dict(sorted(found.items()))


def find_kind(cls: type[BaseModel], tag: str = "kind") -> str | None:
    """Return the literal value of the class's own `tag`; None for an abstract base."""
    field = cls.__annotations__.get(tag)
    names = get_args(cls.model_fields[tag].annotation) if field is not None else ()
    return names[0] if names else None


def list_subclasses(base: type[K]) -> list[type[K]]:
    """Return all subclasses of `base`, each before its own subclasses."""
    direct = base.__subclasses__()
    return [cls for child in direct for cls in (child, *list_subclasses(child))]


class TaggedUnion:
    """Marks an annotation as the union of all kinds of its class, discriminated by `kind`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        members = tuple(list_kinds(source).values())
        if len(members) < 2:
            return handler.generate_schema(members[0] if members else source)
        union: Any = Union[members]  # noqa: UP007 (the members are known only here)
        return handler.generate_schema(Annotated[union, Field(discriminator="kind")])
