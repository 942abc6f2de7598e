"""The rubrics and judges at hand: those that come with the service, and the user's own folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from service.core.judging.judges import Judge
from service.core.models.validation import list_problems
from service.core.rubric import Rubric, add_judges
from service.core.rubric_extension import Extension, extend_rubric
from service.errors import RubricError, UnknownRubricError
from service.packaged_files import find_resource, read_yaml

M = TypeVar("M", bound=BaseModel)
R = TypeVar("R")


LATEST = 64
"""Rubrics of requests that are kept complete."""


class Registry:
    """Rubrics by id. A user's file goes before a packaged one of the same id."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        """Reads every file once; RubricError names the first that cannot be used."""
        judges, rubrics = _read_packaged()
        own = [
            (list(_read_all(place / "judges", _read_judge)), list(_read_all(place, read_rubric))) for place in folders
        ]
        self.judges = {judge.id: judge for judge in (*judges, *[one for found, _ in own for one in found])}
        self._rubrics: dict[str, Rubric] = {}
        self._latest: dict[int, tuple[Rubric | Extension, Rubric]] = {}
        for found in (rubrics, *[found for _, found in own]):
            for choice in sorted(found, key=lambda one: isinstance(one, Extension)):  # what is extended comes first
                self.add(self.find(choice))

    def __iter__(self) -> Iterator[Rubric]:
        """All rubrics, by id."""
        return (self._rubrics[name] for name in sorted(self._rubrics))

    def find(self, choice: str | Rubric | Extension) -> Rubric:
        """The rubric a request means, complete with its judges.

        UnknownRubricError for an id or version that is not here, RubricError for one that cannot be used.
        """
        if not isinstance(choice, str):
            return self._complete_own(choice)
        name, _, version = choice.partition("@")
        rubric = self._rubrics.get(name)
        if rubric is None or (version and version != str(rubric.version)):
            known = ", ".join(f"{r.id}@{r.version}" for r in self)
            raise UnknownRubricError.at("/rubric", f"no rubric {choice!r}; known: {known}")
        return rubric

    def _complete_own(self, choice: Rubric | Extension) -> Rubric:
        """A rubric that a request brings; the same object is completed once, while it is among the latest."""
        kept = self._latest.get(id(choice))
        if kept is None:
            kept = choice, self._extend(choice) if isinstance(choice, Extension) else self.complete(choice)
            self._latest = dict([*list(self._latest.items())[1 - LATEST :], (id(choice), kept)])
        return kept[1]

    def add(self, rubric: Rubric) -> None:
        """Add a rubric, in place of one with the same id; RubricError if it cannot be used."""
        self._rubrics[rubric.id] = self.complete(rubric)
        self._latest = {}

    def complete(self, rubric: Rubric) -> Rubric:
        """The rubric with the judges it asks."""
        try:
            return add_judges(rubric, self.judges)
        except ValueError as error:
            raise RubricError.at("/rubric", str(error)) from None

    def _extend(self, extension: Extension) -> Rubric:
        base = self.find(extension.extends)
        try:
            return self.complete(extend_rubric(base, extension))
        except ValidationError as error:
            raise RubricError(list_problems(error, None, below="/rubric")) from None
        except ValueError as error:
            raise RubricError.at("/rubric/without", str(error)) from None


def read_rubric(document: JsonValue) -> Rubric | Extension:
    """A rubric or an extension from parsed YAML or JSON; RubricError names every problem by its pointer."""
    kind = Extension if isinstance(document, Mapping) and "extends" in document else Rubric
    return _validate(document, kind)


def _read_judge(document: JsonValue) -> Judge:
    return _validate(document, Judge)


@cache
def _read_packaged() -> tuple[Sequence[Judge], Sequence[Rubric | Extension]]:
    """The packaged judges and rubrics: read once per process, because every registry holds them."""
    folder = find_resource("rubrics")
    return tuple(_read_all(folder / "judges", _read_judge)), tuple(_read_all(folder, read_rubric))


def _read_all(folder: Path, read: Callable[[JsonValue], R]) -> Iterator[R]:
    for file in sorted(folder.glob("*.y*ml")):
        try:
            yield read(read_yaml(file.read_text("utf-8"), source=file.name))
        except RubricError as error:
            raise error.below(f"{file.name}: ") from None


def _validate(document: JsonValue, kind: type[M]) -> M:
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise RubricError(list_problems(error, document)) from None
