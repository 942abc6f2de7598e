"""The registry of rubrics and judges: those that come with the service, and those in the user's folders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from service.core.judging.judges import Judge, JudgeCheck
from service.core.models.validation import list_problems
from service.core.rubric import Rubric, add_judges
from service.core.rubric_extension import Extension, extend_rubric
from service.errors import RubricError, UnknownRubricError
from service.reading.packaged_files import find_resource, read_yaml

M = TypeVar("M", bound=BaseModel)
R = TypeVar("R")


MAX_RECENT_RUBRICS = 64
"""Rubrics from requests that are kept complete, so that they are not completed again."""


class Registry:
    """Rubrics by id. A user's file replaces a packaged one with the same id."""

    def __init__(self, folders: Iterable[Path] = ()) -> None:
        """Read every file once; RubricError names the first that cannot be used."""
        judges, rubrics = _read_packaged()
        own_files = [
            (list(_read_all(place / "judges", _read_judge)), list(_read_all(place, read_rubric))) for place in folders
        ]
        self.judges = {judge.id: judge for judge in (*judges, *[one for found, _ in own_files for one in found])}
        self._rubrics: dict[str, Rubric] = {}
        self._recent: dict[int, tuple[Rubric | Extension, Rubric]] = {}
        for found in (rubrics, *[found for _, found in own_files]):
            for choice in sorted(
                found, key=lambda one: isinstance(one, Extension)
            ):  # extensions come after the rubrics they extend
                self.add(self.find(choice))

    def __iter__(self) -> Iterator[Rubric]:
        """Iterate over all rubrics, by id."""
        return (self._rubrics[name] for name in sorted(self._rubrics))

    def list_evidence(self) -> dict[tuple[str, str], set[str]]:
        """Map (judge id, criterion id) to digests of the evidence that code shows that judge in these rubrics; "" for none."""
        evidence: dict[tuple[str, str], set[str]] = {}
        for rubric in self:
            for criterion in rubric.criteria:
                if isinstance(criterion.check, JudgeCheck):
                    evidence.setdefault((criterion.check.judge, criterion.id), set()).add(
                        criterion.check.evidence_digest
                    )
        return evidence

    def find(self, choice: str | Rubric | Extension) -> Rubric:
        """Find the rubric that a request means, complete with its judges.

        UnknownRubricError for an id or version that is not here, RubricError for a rubric that cannot be used.
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
        """Complete a rubric that a request brings; the same object is completed once while it is among the recent ones."""
        entry = self._recent.get(id(choice))
        if entry is None:
            entry = choice, self._extend(choice) if isinstance(choice, Extension) else self.complete(choice)
            self._recent = dict([*list(self._recent.items())[1 - MAX_RECENT_RUBRICS :], (id(choice), entry)])
        return entry[1]

    def add(self, rubric: Rubric) -> None:
        """Add a rubric, in place of one with the same id; RubricError if it cannot be used."""
        self._rubrics[rubric.id] = self.complete(rubric)
        self._recent = {}

    def complete(self, rubric: Rubric) -> Rubric:
        """Return the rubric with the judges it asks; RubricError if one is missing."""
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
    """Validate parsed YAML or JSON as a rubric or an extension; RubricError names every problem by its pointer."""
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
