"""The label queue: what a fit leaves to humans is written down once, whoever writes it, and can be fitted when it is labelled."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from service import conclude, plan
from service.calibration.importers.published import import_labels
from service.calibration.importers.queued import QueuedItem, list_waiting
from service.calibration.label_queue import LabelQueue
from service.calibration.predictions import AnswerId
from service.calibration.report_predictions import build_prediction, list_judged
from service.core.judging.fits import Fit
from service.core.judging.questions import ASSEMBLY
from service.engine import Engine
from service.registry import Shelf
from service.settings import Settings
from service.wiring import build_demo_judging, build_engine
from tests.conftest import Run
from tests.core.test_require_calibration import JURY, TURNS, fit_of, replies, rubric
from tests.core.test_require_calibration import body as trace_body

SHELF = Shelf()


def body(number: int, *, right: bool = True, **more: Any) -> dict[str, Any]:
    """An answer about a payload, grounded or not; nobody but a judge can tell."""
    events = [
        {"user": f"What became of order {number}?"},
        {"call": {"name": "get_order", "arguments": {}}, "result": {"order": number, "amount_cents": 5400}},
        {"assistant": f"It cost ${54 if right else 77}.00."},
    ]
    criteria = [{"id": "grounded", "stage": "integrate", "check": {"kind": "judge", "judge": "result_groundedness"}}]
    trace = {"format": "callgrade", "id": f"t{number}", "events": events}
    return {"rubric": {"id": "one", "criteria": criteria}, "trace": trace, **more}


def fit(*, band: tuple[float, float] | None = (0.3, 0.7), **more: Any) -> Fit:
    """A fit of the stand-in by which right answers are passed by 6 in 10 people, and wrong ones by 1 in 10."""
    judge = SHELF.judges["result_groundedness"]
    made = {
        "judge": judge.id,
        "judge_digest": judge.digest,
        "model": "callgrade/stand-in",
        "assembly": ASSEMBLY,
        "criterion": "grounded",
        "method": "isotonic",
        "calibrator": {"kind": "isotonic", "raw": [0.5, 1.0], "value": [0.1, 0.6]},
        "origin": "human",
        "labels": 100,
        "groups": 100,
        "enough": True,
        "domain": (0.0, 1.0),
        "threshold": 0.5,
        "abstain": band,
        "data": "0" * 64,
    }
    return Fit.model_validate({**made, **more})


def scored(run: Run, file: Path, bodies: Iterable[dict[str, Any]], fits: Iterable[Fit] = ()) -> list[Any]:
    """Scores all of them and waits for the queue."""
    engine = Engine(SHELF, judging=build_demo_judging(), fits=list(fits) or [fit()], queue=LabelQueue(file))

    async def all_of_them() -> list[Any]:
        try:
            return [await engine.score_async(one) for one in bodies]
        finally:
            await engine.close()

    return run(all_of_them())


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_what_lies_in_the_band_is_written_once(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "queue.jsonl"
    bodies = [body(1), body(2), body(1), body(3, right=False)]
    reports = scored(run, file, bodies)
    assert [report.criteria[0].value for report in reports] == [None, None, None, 0.1]
    assert [report.open[0].cause for report in reports if report.open] == ["human"] * 3
    scored(run, file, bodies)
    found = lines(file)
    assert [one["trace"] for one in found] == [bodies[0]["trace"], bodies[1]["trace"]]
    first = found[0]
    assert (first["criterion"], first["step"], first["group"], first["labels"]) == ("grounded", "integrate", "t1", [])
    said = first["prediction"]
    assert (said["id"], said["raw"], said["judge"], said["model"]) == (
        first["id"],
        1.0,
        "result_groundedness",
        "callgrade/stand-in",
    )
    assert (first["value"], first["threshold"]) == (0.6, 0.5)
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("changed", [{"band": None}, {"band": (0.0, 0.5)}, {"enough": False}, {"model": "other"}])
def test_what_lies_elsewhere_or_is_not_calibrated_is_not(run: Run, tmp_path: Path, changed: dict[str, Any]) -> None:
    scored(run, tmp_path / "queue.jsonl", [body(1)], [fit(**changed)])
    assert lines(tmp_path / "queue.jsonl") == []


def test_tags_name_group_and_stratum(run: Run, tmp_path: Path) -> None:
    scored(run, tmp_path / "q", [body(1, tags={"group": "g", "stratum": "s"})])
    [found] = lines(tmp_path / "q")
    assert (found["group"], found["stratum"]) == ("g", "s")


def test_judges_that_are_off_leave_nothing(run: Run, tmp_path: Path) -> None:
    scored(run, tmp_path / "q", [body(1, judges="off")])
    assert not (tmp_path / "q").exists()


def test_filled_in_it_is_a_labelled_set_with_predictions(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "q"
    scored(run, file, [body(n) for n in range(3)])
    found = lines(file)
    found[1]["labels"] = [{"annotator": "ana", "label": "fail", "note": "no"}]
    made = import_labels([json.dumps(one) for one in found])
    assert [item.id for item in made.labels.items] == [found[1]["id"]]
    assert [(one.id, one.raw) for one in made.predictions] == [(found[1]["id"], 1.0)]
    assert not made.labels.items[0].passes


def test_a_line_that_was_cut_off_is_taken_away(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "q"
    scored(run, file, [body(1)])
    whole = file.read_bytes()
    file.write_bytes(whole + whole[: len(whole) // 2])
    scored(run, file, [body(2)])
    assert file.read_bytes().startswith(whole)
    assert len(lines(file)) == 2


def test_a_file_that_was_replaced_is_begun_again(run: Run, tmp_path: Path) -> None:
    file, queue = tmp_path / "q", LabelQueue(tmp_path / "q")
    engine = Engine(SHELF, judging=build_demo_judging(), fits=[fit()], queue=queue)
    run(engine.score_async(body(1)))
    queue._thread.submit(file.unlink).result()  # pyright: ignore[reportPrivateUsage]
    run(engine.score_async(body(1)))
    run(engine.close())
    assert len(lines(file)) == 1


@pytest.mark.parametrize("name", ["none/queue.jsonl", "."])
def test_a_file_that_cannot_be_written_is_one_warning_and_no_fault(
    run: Run, tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "callgrade.labels"):
        reports = scored(run, tmp_path / name, [body(1), body(2)])
    assert [report.verdict for report in reports] == ["abstain", "abstain"]  # 0.6 lies in the band
    assert [one.message for one in caplog.records] == ["the label queue cannot be written"]


def test_after_its_end_nothing_is_taken_and_nothing_raised(run: Run, tmp_path: Path) -> None:
    queue = LabelQueue(tmp_path / "q")
    queue.close()
    run(Engine(SHELF, judging=build_demo_judging(), fits=[fit()], queue=queue).score_async(body(1)))
    assert not (tmp_path / "q").exists()


WRITER = """
import sys
from pathlib import Path
from service.calibration.importers.queued import QueuedItem
from service.calibration.label_queue import LabelQueue
from service.calibration.report_predictions import list_judged, build_prediction
queue = LabelQueue(Path(sys.argv[1]))
for number in range(200):
    item = {"id": f"i{number}", "criterion": "c", "group": "g", "trace": {"text": "x" * 5000}, "value": 0.5}
    queue._append([QueuedItem.model_validate({**item, "prediction": {"id": f"i{number}", "criterion": "c", "raw": 0.5}})])
"""


def test_several_processes_write_each_item_once(tmp_path: Path) -> None:
    file = tmp_path / "q"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(file)]) for _ in range(3)]
    assert [one.wait(timeout=60) for one in writers] == [0, 0, 0]
    assert sorted(one["id"] for one in lines(file)) == sorted(f"i{number}" for number in range(200))


def test_a_jury_is_all_of_its_models() -> None:
    """So that a fit made of its predictions is bound to what speaks later."""
    asked = plan(
        trace_body(rubric(TURNS | {"check": {"kind": "judge", "judge": "jury"}}, judges=[JURY], required=False))
    )
    report = conclude(asked, replies(asked, 1.0))
    said = build_prediction(AnswerId("a", "answered"), list_judged(report, "answered")[0], asked.rubric)
    made = fit_of("answered", "jury", asked.rubric)
    assert (said.model, said.binding) == ("a+b", made.binding)


def test_the_most_doubtful_come_first() -> None:
    def queued(name: str, value: float, threshold: float | None = 0.5, **more: Any) -> QueuedItem:
        said = {"id": name, "criterion": "c", "raw": value}
        made = {"id": name, "criterion": "c", "group": "g", "prediction": said, "value": value, "threshold": threshold}
        return QueuedItem.model_validate({**made, **more})

    done = [{"annotator": "ana", "label": True}]
    items = [queued("far", 0.8), queued("near", 0.45), queued("at", 0.7, 0.7), queued("b", 0.5, labels=done)]
    assert [one.id for one in list_waiting(items)] == ["at", "near", "far"]
    assert [one.id for one in list_waiting(items, {("near", "c")})] == ["at", "far"]
    even = [queued(f"e{n}", 0.5) for n in range(20)]
    assert list_waiting(even) == list_waiting(even[::-1])
    assert [one.id for one in list_waiting(even)] != sorted(one.id for one in even)


def test_the_setting_names_the_file(tmp_path: Path) -> None:
    made = Settings.from_env({"CALLGRADE_HOME": str(tmp_path), "CALLGRADE_LABEL_QUEUE": str(tmp_path / "q")})
    assert made.label_queue == tmp_path / "q"
    assert build_engine(made).queue is not None
    assert build_engine(Settings(home=tmp_path)).queue is None
