"""Figures of the packaged human labels and recorded judges, as they were measured on these sets before."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from service.calibration.figures import Resampling, compute_human_figures
from service.calibration.options import ReportOptions
from service.calibration.predictions import JudgedSet, group_by_judge
from service.calibration.report.rendering import render_report_markdown
from service.calibration.run import calibrate
from service.stats.tallies import auroc, build_confusion_at, build_tally
from tests.bulk import WHOLE
from tests.real.published import read_published

pytestmark = pytest.mark.shared_data

DRAWS = 100 if WHOLE else 10


def read(folder: Path, name: str) -> JudgedSet:
    with gzip.open(folder / "labels" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return read_published(lines, source=name)


@pytest.fixture(scope="module")
def spans(shared_data: Path) -> JudgedSet:
    return read(shared_data, "groundedness_d2teval_cal")


SETS = [
    ("groundedness_d2teval_cal", 696, 174, 6 * 696),
    ("groundedness_quintd1_train", 1976, 494, 1976),
]


@pytest.mark.parametrize(("name", "items", "groups", "predictions"), SETS)
def test_the_packaged_sets_are_read_whole(
    shared_data: Path, name: str, items: int, groups: int, predictions: int
) -> None:
    found = read(shared_data, name)
    assert (len(found.labels.items), len(found.predictions)) == (items, predictions)
    assert len({item.group for item in found.labels.items}) == groups


def test_no_annotator_is_two_opinions_in_quintd(shared_data: Path) -> None:
    """A hundred of its outputs have three records, but of two people at most: their own repeated word is no agreement."""
    items = read(shared_data, "groundedness_quintd1_train").labels.items
    assert Counter(len(item.labels) for item in items) == {1: 1896, 2: 80}
    found = compute_human_figures(items, Resampling(draws=0))
    assert found is not None
    assert (found.of("kappa").value or 1) < 0.5


def test_human_agreement_is_what_makes_the_ceiling(spans: JudgedSet) -> None:
    """Twelve outputs with 29 to 96 annotators, and the test outputs that two annotators labelled."""
    many = [item for item in spans.labels.items if len(item.labels) > 2]
    two = [item for item in spans.labels.items if len(item.labels) == 2]
    crowd, pairs = (compute_human_figures(items, Resampling(draws=0)) for items in (many, two))
    assert crowd is not None
    assert pairs is not None
    assert len(many) == 12
    assert crowd.of("alpha").value == pytest.approx(0.733, abs=0.02)
    assert 0.3 < (pairs.of("kappa").value or 0) < 0.6
    assert 0.65 < (pairs.of("accuracy").value or 0) < 0.8


# Judge -> kappa of its own verdicts (it found no fault), AUROC of its value on this half; the other half is kept back.
JUDGES = {
    "o3-mini": (0.570, 0.873),
    "claude-3-7-sonnet": (0.339, 0.869),
    "gemini-2-0-flash-thinking": (0.477, 0.875),
    "deepseek-r1": (0.568, 0.841),
    "gpt4o": (0.074, 0.782),
    "llama3-3": (0.122, 0.767),
}


def test_recorded_judges_agree_as_far_as_they_did(spans: JudgedSet) -> None:
    for judge in group_by_judge(spans.predictions):
        raw = [judge.raw[item.key][0] for item in spans.labels.items]
        found = build_tally(raw, [item.passes for item in spans.labels.items])
        assert (build_confusion_at(found, 0.75).kappa, auroc(found)) == pytest.approx(JUDGES[judge.name], abs=1e-3)


@pytest.mark.whole
def test_a_run_from_labels_to_report(spans: JudgedSet) -> None:
    """One default seed, never searched."""
    options = ReportOptions(resampling=Resampling(draws=DRAWS))
    run = calibrate(spans.labels, spans.predictions, options)
    (jury,) = run.juries
    best = next(judge for judge in run.judges if judge.name == jury.best)
    assert (best.fit.method, best.fit.labels, best.after.n, best.fit.groups) == ("isotonic", 696, 696, 174)
    own, after = best.own.of("ece").value, best.after.of("ece").value
    assert own is not None
    assert after is not None
    assert after < own
    assert (jury.report.after.of("auroc").value or 0) > (best.after.of("auroc").value or 1)
    for judge in run.judges:
        pooled, within = judge.after.of("auroc").value, judge.after.of("auroc_within").value
        assert pooled is not None
        assert within is not None
        assert within < pooled - 0.05  # much of the pooled figure is who wrote the text
    assert "one human with another" in render_report_markdown(run)
