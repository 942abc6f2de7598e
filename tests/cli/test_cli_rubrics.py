"""`callgrade rubrics`: what is listed and shown."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest

from service.api.app import create_app
from service.reading.packaged_files import read_yaml
from service.registry import Registry, read_rubric
from tests.bulk import share
from tests.cli.cli_run import Run

REGISTRY = Registry()


def test_the_list_has_every_rubric(run: Run) -> None:
    assert [line.split()[0] for line in run("rubrics", "list").lines[1:]] == [f"{r.id}@{r.version}" for r in REGISTRY]


@pytest.mark.whole
@pytest.mark.parametrize("rubric", [pytest.param(r, id=r.id) for r in share(list(REGISTRY), one_in=3)])
def test_what_is_shown_reads_back_to_the_same_rubric(rubric: object, run: Run, tmp_path: Path) -> None:
    name = rubric.id  # type: ignore[attr-defined]
    wanted = REGISTRY.find(name)
    for form in ("yaml", "json"):
        text = run("rubrics", "show", name, "--format", form).out
        again = REGISTRY.find(read_rubric(read_yaml(text, source=form)))  # type: ignore[arg-type]
        assert again.digest == wanted.digest
        (tmp_path / f"r.{form}").write_text(text)
        checked = run("rubrics", "check", f"r.{form}")
        assert (checked.code, checked.err, wanted.digest in checked.out) == (0, "", True)


def test_json_is_what_http_gives(run: Run) -> None:
    async def get() -> bytes:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(create_app()), base_url="http://127.0.0.1"
        ) as client:
            return (await client.get("/v1/rubrics/four_step")).content

    assert run("rubrics", "show", "four_step", "--format", "json").raw == asyncio.run(get()) + b"\n"
