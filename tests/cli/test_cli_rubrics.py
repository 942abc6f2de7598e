"""`callgrade rubrics`: what is listed, shown and checked."""

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
        assert (checked.code, checked.err) == (0, "")
        assert wanted.digest in checked.out


def test_json_is_what_http_gives(run: Run) -> None:
    async def get() -> bytes:
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(create_app()), base_url="http://127.0.0.1"
        ) as client:
            return (await client.get("/v1/rubrics/four_step")).content

    assert run("rubrics", "show", "four_step", "--format", "json").raw == asyncio.run(get()) + b"\n"


BAD = """\
id: mine
criteria:
  - id: one
    stage: decide
    check: {kind: decid}
  - id: two
    stage: selekt
    check: {kind: tool_name}
    wieght: 2
"""
PLACES = [
    ("an unknown kind", BAD, "r.yaml: /criteria/0/check: "),
    ("an unknown stage", BAD, "r.yaml: /criteria/1/stage: "),
    ("a misspelt key", BAD, "r.yaml: /criteria/1/wieght: "),
    (
        "what is missing",
        "id: mine\ncriteria:\n  - id: a\n",
        "r.yaml: /criteria/0/stage: ",
    ),
    ("bad syntax", "id: mine\n  x: [\n", "r.yaml: line 2, column "),
    ("an anchor", "id: &a mine\n", "r.yaml: line 1, column 5: anchors"),
    ("an unknown base", "extends: nope\n", "r.yaml: no rubric 'nope'"),
    (
        "an unknown judge",
        "id: a\ncriteria: [{id: b, stage: select, check: {kind: judge, judge: x}}]\n",
        "r.yaml: no judge x",
    ),
    ("no mapping", "- 1\n", "r.yaml: "),
    ("nothing", "", "r.yaml: line 1, column 1: the document is empty"),
]


@pytest.mark.parametrize(("text", "wanted"), [pytest.param(t, w, id=name) for name, t, w in PLACES])
def test_a_problem_is_named_with_its_place(run: Run, tmp_path: Path, text: str, wanted: str) -> None:
    (tmp_path / "r.yaml").write_text(text)
    ran = run("rubrics", "check", "r.yaml")
    assert (ran.code, ran.out) == (4, "")
    assert f"error: {wanted}" in ran.err, ran.err


def test_one_bad_file_does_not_hide_a_good_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("id: 1\n")
    (tmp_path / "good.yaml").write_text("extends: four_step\nid: good\n")
    ran = run("rubrics", "check", "bad.yaml", "good.yaml", "absent.yaml")
    assert ran.code == 4
    assert f"good.yaml: ok, good@2, {len(REGISTRY.find('four_step').criteria)} criteria, sha256 " in ran.out
    assert "bad.yaml: /id" in ran.err
    assert "absent.yaml: No such file" in ran.err
