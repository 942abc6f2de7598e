"""A whole run: what is split, fitted and told, and that order and repetition change nothing."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from service.calibration.figures import Resampling, compute_human_figures
from service.calibration.labels import build_labelled_set
from service.calibration.options import ReportOptions
from service.calibration.predictions import Prediction
from service.calibration.report.rendering import render_report_markdown, render_report_page
from service.calibration.results import read_report, render_json
from service.calibration.run import calibrate
from tests.calibration.label_sets import drawn, item

QUICK = ReportOptions(resampling=Resampling(draws=40))


def test_the_order_of_labels_and_predictions_changes_no_byte() -> None:
    labels, predictions = drawn(240, judges=(0.85, 0.7))
    first = calibrate(labels, predictions, QUICK)
    rng = random.Random(5)  # noqa: S311
    rows, said = [(labels.lines[one.key], one) for one in labels.items], list(predictions)
    rng.shuffle(rows)
    rng.shuffle(said)
    again = calibrate(build_labelled_set(rows, source=labels.source), said, QUICK)
    assert render_json(again.report) == render_json(first.report)
    assert render_json(again.fits) == render_json(first.fits)


def test_all_labels_are_fitted_and_all_are_held_out_once() -> None:
    labels, predictions = drawn(400)
    run = calibrate(labels, predictions, QUICK)
    (judge,) = run.report.judges
    assert (judge.fitted, judge.held_out, judge.fitted_groups, judge.held_out_groups) == (400, 400, 100, 100)
    assert (judge.after.n, judge.own.n, judge.after.confusion.n) == (400, 400, 400)
    assert sorted(one.id for one in judge.items) == [item.id for item in labels.items]
    other = calibrate(labels, predictions, replace(QUICK, seed="other"))
    assert other.fits[0].data == run.fits[0].data
    assert other.fits[0].calibrator == run.fits[0].calibrator
    assert other.report.judges[0].items != judge.items
    assert other.fits[0].id != run.fits[0].id


def test_no_item_has_a_part_in_its_own_score() -> None:
    """Raw values by which each group is known: a map that had seen them would be right every time."""
    rng = random.Random(9)  # noqa: S311
    items = [item(n, rng.random() < 0.5, group=str(n)) for n in range(300)]
    said = [Prediction(id=one.id, criterion="c", raw=n / 300, model="m") for n, one in enumerate(items)]
    (judge,) = calibrate(build_labelled_set(enumerate(items, 1), source="s"), said, QUICK).report.judges
    assert (judge.after.of("accuracy").value or 1) < 0.6


def test_figures_are_of_the_held_out_items_alone() -> None:
    """A judge that is always right on what is fitted and always wrong on the rest."""
    items = [item(n, n % 3 > 0, group=str(n), split="fit" if n < 100 else "test") for n in range(200)]
    said = [
        Prediction(id=one.id, criterion="c", raw=0.9 if one.passes is (one.split == "fit") else 0.1, model="m")
        for one in items
    ]
    run = calibrate(build_labelled_set(enumerate(items, 1), source="s"), said, QUICK)
    (judge,) = run.report.judges
    assert (judge.after.of("accuracy").value, judge.own.of("auroc").value) == (0, 0)
    assert judge.after.confusion.n == judge.held_out == 100
    assert run.fits[0].calibrator.apply(0.9) > 0.9


@pytest.mark.parametrize(
    ("count", "method", "calibrated"),
    [(40, "identity", False), (60, "platt", True), (320, "isotonic", True)],
)
def test_the_method_follows_the_number_of_labels(count: int, method: str, calibrated: bool) -> None:
    run = calibrate(*drawn(count), QUICK)
    (judge,), (fit,) = run.report.judges, run.fits
    assert (judge.method, judge.calibrated, fit.enough, fit.usable) == (method, calibrated, calibrated, calibrated)
    assert any("uncalibrated" in remark for remark in run.report.remarks) is not calibrated


def test_humans_beside_humans_by_hand() -> None:
    """Three items with two labels, one with three: 1, 1, 0 and 1/3 of the pairs agree."""
    items = [
        item(0, True, True),
        item(1, False, False),
        item(2, True, False),
        item(3, True, True, False),
        item(4, True),
    ]
    found = compute_human_figures(items, Resampling(draws=0))
    assert found is not None
    assert found.n == 4
    assert found.of("accuracy").value == pytest.approx((1 + 1 + 0 + 1 / 3) / 4)
    assert found.of("alpha").value == pytest.approx(1 - 8 * 4 / 40)  # 5 of 9 labels pass
    assert found.of("brier").value == pytest.approx(1 - (1 + 1 + 0 + 1 / 3) / 4)
    assert compute_human_figures(items[4:], Resampling(draws=0)) is None


def test_a_jury_of_judges_with_their_own_errors_beats_each_and_of_one_twice_does_not() -> None:
    labels, predictions = drawn(800, judges=(0.75, 0.75, 0.75, 0.5), seed=3)
    (jury,) = calibrate(labels, predictions, QUICK).report.juries
    assert jury.kept
    weights = {one.name: one.weight for one in jury.members}
    assert sum(weights.values()) == pytest.approx(1)
    assert weights["m3"] == min(weights.values()) < 0.1
    same = [one.model_copy(update={"model": name}) for one in predictions if one.model == "m0" for name in ("a", "b")]
    run = calibrate(labels, same, QUICK)
    assert not run.report.juries[0].kept
    assert len(run.fits) == 2


def test_the_report_reads_back_and_shows_text_of_items_as_text() -> None:
    labels, predictions = drawn(120)
    answers = ("<script>x</script> |a|\n[b](c)", "1<i>")
    nasty = [one.model_copy(update={"answer": answers[n % 2], "family": "<b>"}) for n, one in enumerate(labels.items)]
    run = calibrate(
        build_labelled_set(enumerate(nasty, 1), source="<i>"), predictions, replace(QUICK, max_disagreements=1000)
    )
    data = render_json(run.report)
    assert render_json(read_report(data)) == data
    assert "NaN" not in data.decode()
    html, text = render_report_page(run.report), render_report_markdown(run.report)
    assert "<script" not in html
    assert "<i>" not in html
    assert "&lt;script&gt;" in html
    assert r"\<script\>x\</script\> \|a\| \[b\](c)" in text
    assert "http" not in html.replace("http-equiv", "")
