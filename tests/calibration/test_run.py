"""A whole run: what is split, fitted and told, and that order and repetition change nothing."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from service.calibration.figures import Resampling, compute_human_figures
from service.calibration.labels import build_labelled_set
from service.calibration.options import ReportOptions
from service.calibration.predictions import Prediction
from service.calibration.report.held_out import measure_retest
from service.calibration.report.rendering import render_report_markdown, render_report_page
from service.calibration.results import parse_calibration_report, render_report_json
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
    assert render_report_json(again) == render_report_json(first)
    assert render_report_json(again.fits) == render_report_json(first.fits)


def test_all_labels_are_fitted_and_all_are_held_out_once() -> None:
    labels, predictions = drawn(400)
    run = calibrate(labels, predictions, QUICK)
    (judge,) = run.judges
    assert (judge.fit.labels, judge.after.n, judge.fit.groups, judge.after.groups) == (400, 400, 100, 100)
    assert (judge.after.n, judge.own.n, judge.after.confusion.n) == (400, 400, 400)
    assert sorted(one.id for one in judge.items) == [item.id for item in labels.items]
    other = calibrate(labels, predictions, replace(QUICK, seed="other"))
    assert other.fits[0].data == run.fits[0].data
    assert other.fits[0].calibrator == run.fits[0].calibrator
    assert other.judges[0].items != judge.items
    assert other.fits[0].id != run.fits[0].id


def test_figures_are_of_the_held_out_items_alone() -> None:
    """A judge that is always right on what is fitted and always wrong on the rest."""
    items = [item(n, n % 3 > 0, group=str(n), split="fit" if n < 100 else "test") for n in range(200)]
    said = [
        Prediction(id=one.id, criterion="c", raw=0.9 if one.passes is (one.split == "fit") else 0.1, model="m")
        for one in items
    ]
    run = calibrate(build_labelled_set(enumerate(items, 1), source="s"), said, QUICK)
    (judge,) = run.judges
    assert (judge.after.of("accuracy").value, judge.own.of("auroc").value) == (0, 0)
    assert judge.after.confusion.n == judge.after.n == 100
    assert run.fits[0].calibrator.apply(0.9) > 0.9


def test_constructed_labels_are_no_human_agreement() -> None:
    labels, predictions = drawn(400, origin="constructed")
    run = calibrate(labels, predictions, QUICK)
    (judge,), (facts,) = run.judges, run.labels
    assert (bool(judge.why), judge.humans, facts.humans) == (True, None, None)
    assert not run.fits[0].usable
    text = render_report_markdown(run)
    assert "no agreement with humans" in text
    assert "one human with another" not in text.replace("one human beside", "")


def test_humans_beside_humans_by_hand() -> None:
    """Three items with two labels, one with three: 1, 1, 0 and 1/3 of the pairs agree."""
    said = [(True, True), (False, False), (True, False), (True, True, False), (True,)]
    items = [item(n, *labels) for n, labels in enumerate(said)]
    found = compute_human_figures(items, Resampling(draws=0))
    assert found is not None
    assert found.n == 4
    assert found.of("accuracy").value == pytest.approx((1 + 1 + 0 + 1 / 3) / 4)
    assert found.of("alpha").value == pytest.approx(1 - 8 * 4 / 40)  # 5 of 9 labels pass
    assert found.of("brier").value == pytest.approx(1 - (1 + 1 + 0 + 1 / 3) / 4)
    assert compute_human_figures(items[4:], Resampling(draws=0)) is None


@pytest.mark.parametrize(
    ("asked", "items", "rate", "low", "high"),
    [
        # Two of three answers pass: two of three pairs differ. The next item's one pair does not, and one answer is no pair.
        ([("g", (0.9, 0.6, 0.2)), ("h", (0.8, 0.8)), ("i", (0.4,))], 2, (2 / 3 + 0) / 2, 0, 1),
        # A judge that never flips may still do so in another set: Wilson's for none of 20.
        ([(str(n), (0.9, 0.9)) for n in range(20)], 20, 0, 0, 0.161125),
    ],
)
def test_asking_again(
    asked: list[tuple[str, tuple[float, ...]]], items: int, rate: float, low: float, high: float
) -> None:
    found = measure_retest(asked, 0.5)
    assert found is not None
    assert found.items == items
    assert (found.flip_rate.value, found.flip_rate.low, found.flip_rate.high) == pytest.approx((rate, low, high))
    assert measure_retest([("g", (0.4,))], 0.5) is None


def test_repeats_are_reported_and_the_first_answer_is_scored() -> None:
    labels, predictions = drawn(200)
    again = [one.model_copy(update={"sample": 1, "raw": 1 - one.raw}) for one in predictions]
    once, twice = calibrate(labels, predictions, QUICK), calibrate(labels, [*again, *predictions], QUICK)
    assert once.judges[0].retest is None
    assert twice.judges[0].retest is not None
    assert twice.judges[0].retest.items == 200
    assert twice.judges[0].retest.flip_rate.value == 1  # each second answer is the opposite of the first
    assert "noise floor" not in render_report_markdown(once)
    assert "noise floor" in render_report_markdown(twice)
    assert "noise floor" in render_report_page(twice)
    assert twice.judges[0].after == once.judges[0].after


def test_sentences_of_the_report_are_true() -> None:
    labels, predictions = drawn(200, judges=(0.8, 0.7))
    split = [one.model_copy(update={"split": "fit" if n < 100 else "test"}) for n, one in enumerate(labels.items)]
    given = calibrate(build_labelled_set(enumerate(split, 1), source="s"), predictions, QUICK)
    text = render_report_markdown(given)
    assert "say themselves which are fitted" in text
    assert "hash" not in text
    assert given.judges[0].after.n == 100
    undrawn = calibrate(labels, predictions, replace(QUICK, resampling=Resampling(draws=0)))
    assert undrawn.juries[0].kept is None
    text = render_report_markdown(undrawn)
    assert "Not kept" not in text
    assert "Not decided" in text
    for judge in calibrate(labels, predictions, QUICK).judges:
        for measure in judge.after.measures.values():
            assert measure.value is None or measure.low is None or measure.low <= measure.value <= (measure.high or 0)
        assert judge.review_band is not None or "20% or fewer" in text


def test_the_report_reads_back_and_shows_text_of_items_as_text() -> None:
    labels, predictions = drawn(120)
    answers = ("<script>x</script> |a|\n[b](c)", "1<i>")
    nasty = [one.model_copy(update={"answer": answers[n % 2], "family": "<b>"}) for n, one in enumerate(labels.items)]
    run = calibrate(
        build_labelled_set(enumerate(nasty, 1), source="<i>"), predictions, replace(QUICK, max_disagreements=1000)
    )
    data = render_report_json(run)
    assert render_report_json(parse_calibration_report(data)) == data
    assert "NaN" not in data.decode()
    html, text = render_report_page(run), render_report_markdown(run)
    assert "<script" not in html
    assert "<i>" not in html
    assert "&lt;script&gt;" in html
    assert r"\<script\>x\</script\> \|a\| \[b\](c)" in text
    assert "http" not in html.replace("http-equiv", "")
