"""Scoring on Ray, all that needs no Ray: parts, their counts, what is refused. `make interop ONLY=ray` checks the rest."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import callgrade
from service.cli.inputs import Inputs, read_inputs
from service.cli.on_ray import PartOrder, PartWorker, digest_inputs
from service.cli.tally import Tally
from service.errors import SettingsError
from service.reading.blocks import Block, list_blocks
from tests.cli.cli_run import Run

CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"n": 1}'}}
MESSAGES = [{"role": "user", "content": "?"}, {"role": "assistant", "tool_calls": [CALL]}]


def build_request(number: int, **more: Any) -> dict[str, Any]:
    trace = {"id": f"t{number}", "messages": MESSAGES}
    expected = {"calls": [{"tool": "look", "args": {"n": number % 3}}]}
    return {"trace": trace, "expected": expected, "judges": "off", **more}


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in records), "utf-8")
    return path


def order(folder: object, file: Path, **options: Any) -> PartOrder:
    inputs = read_inputs([file], **options)
    return PartOrder(inputs, str(folder), "jsonl", digest_inputs(inputs))


def cut(file: Path, inputs: Inputs, least: int = 600) -> list[Block]:
    return list_blocks(str(file), inputs.limits, inputs.layout, least=least)


@pytest.mark.parametrize("folder", ["out", "memory://callgrade/out"])
def test_parts_are_what_score_writes_and_are_done_once(folder: str, run: Run, tmp_path: Path) -> None:
    trials = [build_request(n, tags={"trial": str(n), "case": "x"}) for n in range(3)]
    file = write(tmp_path / "in.jsonl", *map(build_request, range(8)), "{", {"trace": {"messages": 3}}, *trials)
    whole = run("score", file, "--format", "ndjson")
    given = order(folder, file)
    blocks, worker = cut(file, given.inputs), PartWorker(given)
    given.prepare_folder(blocks)
    first, second = ([worker.score(block) for block in blocks] for _ in range(2))
    assert len(blocks) > 2
    files, place = given.open_folder()
    parts = [files.cat_file(f"{place}/{given.name_part(block)}") for block in blocks]
    assert b"".join(parts) == whole.raw
    assert sorted(files.ls(place, detail=False)) == sorted(f"{place}/{given.name_part(block)}" for block in blocks)
    assert [[one.parts for one in counted] for counted in (first, second)] == [[0] * len(blocks), [1] * len(blocks)]
    said = [line for line in whole.err.splitlines() if "scored with" in line]
    for counted in (first, second):
        total = Tally()
        for one in counted:
            total.merge(one)
        assert ["; ".join(total.list_lines())] == said
        assert [str(one.place) for one in total.refusals] == [f"{file}:9", f"{file}:10"]
    url = folder if "://" in folder else tmp_path / folder
    reference = tmp_path / "reference.jsonl"
    reference.write_bytes(whole.raw)
    assert run("summarize", url, "--format", "json").out == run("summarize", reference, "--format", "json").out


NAMED = [
    ("another row", "in.jsonl", [1, 3], {}),
    ("another file", "b.jsonl", [1, 2], {}),
    ("another rubric", "in.jsonl", [1, 2], {"rubric": "read_only"}),
    ("judges off", "in.jsonl", [1, 2], {"judges": "off"}),
]


@pytest.mark.parametrize(("what", "name", "numbers", "options"), NAMED)
def test_a_part_is_named_by_what_it_depends_on(
    what: str, name: str, numbers: list[int], options: dict[str, Any], run: Run, tmp_path: Path
) -> None:
    def name_part(name: str, numbers: list[int], **options: Any) -> str:
        given = order("out", write(tmp_path / name, *map(build_request, numbers)), **options)
        [block] = cut(tmp_path / name, given.inputs, least=10**6)
        return given.name_part(block)

    first = name_part("in.jsonl", [1, 2])
    assert first.startswith("part-in.jsonl-00000-")
    assert (name_part("in.jsonl", [1, 2]), name_part(name, numbers, **options) != first) == (first, True), what


def test_parts_of_something_else_are_refused(run: Run, tmp_path: Path) -> None:
    given = order("out", write(tmp_path / "in.jsonl", build_request(1)))
    Path("out").mkdir()
    (tmp_path / "out" / ".unfinished").touch()
    (tmp_path / "out" / "notes.txt").touch()
    given.prepare_folder(cut(tmp_path / "in.jsonl", given.inputs))
    (tmp_path / "out" / "part-x-00000-0.jsonl").touch()
    with pytest.raises(SettingsError, match="another input, option or version, such as part-x-00000-0"):
        given.prepare_folder(cut(tmp_path / "in.jsonl", given.inputs))


def test_a_worker_that_would_score_otherwise_is_refused(run: Run, tmp_path: Path) -> None:
    given = order("out", write(tmp_path / "in.jsonl", build_request(1)))
    [block] = cut(tmp_path / "in.jsonl", given.inputs)
    with pytest.raises(SettingsError, match="other rubrics, judges or fits"):
        PartWorker(replace(given, digest="0")).score(block)


def test_batches_of_a_dataset_give_each_row_a_report_or_an_error(run: Run) -> None:
    requests = [build_request(1), build_request(2)]
    rows = [*map(json.dumps, requests), "{", "[1]", None, json.dumps({"trace": 1})]
    scored = callgrade.ScoreBatches()({"request": rows, "n": [*range(6)]})
    reports = [callgrade.report_json(callgrade.score(one)).decode() for one in requests]
    assert (scored["request"], scored["n"], scored["report"]) == (rows, [*range(6)], [*reports, "", "", "", ""])
    details = [json.loads(one)["detail"] if one else "" for one in scored["error"]]
    assert details[:2] == ["", ""]
    assert ["not JSON" in details[2], "an object" in details[3], "an object" in details[4], "/trace" in details[5]] == [
        True
    ] * 4
