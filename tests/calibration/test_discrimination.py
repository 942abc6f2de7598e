"""No fit without discrimination: which judges are useful, which are not, and that the latter decide nothing."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from pydantic import ValidationError

from service.calibration.bench import build_bench
from service.calibration.figures import Resampling
from service.calibration.labels import LabelledSet, build_labelled_set
from service.calibration.options import ReportOptions
from service.calibration.predictions import JudgePredictions, Prediction
from service.calibration.report.held_out import compute_ranking_p, measure_discrimination
from service.calibration.report.rendering import render_report_markdown
from service.calibration.report.usefulness import build_row, describe_use
from service.calibration.results import CalibrationReport
from service.calibration.run import calibrate
from service.core.judging.fits.fit import Binding, calibrate_value
from service.core.judging.fits.usefulness import Discrimination
from service.errors import InputError
from service.fits.files import refuse_useless
from tests.bulk import WHOLE
from tests.calibration.label_sets import drawn, item
from tests.fits import USES, make_discrimination, make_fit
from tests.tables import DATA, read_yaml

TABLES = read_yaml(DATA / "calibration" / "floors.yaml")

QUICK = ReportOptions(resampling=Resampling(draws=0), jury=False, guarantee=0.8)
RNG = random.Random(3)  # noqa: S311
COINS = [float(RNG.random() < 0.5) for _ in range(200)]

JUDGES: dict[str, tuple[str, Callable[[int, float], float]]] = {
    "as it is": ("useful", lambda _, raw: raw),
    "constant": ("useless", lambda *_: 0.7),
    "coin-flipping": ("useless", lambda at, _: COINS[at]),
    "inverted": ("inverted", lambda _, raw: 1 - raw),
}


def run_judge(name: str, count: int = 200) -> tuple[CalibrationReport, LabelledSet, list[Prediction]]:
    labels, said = drawn(count)
    said = [one.model_copy(update={"raw": JUDGES[name][1](at, one.raw)}) for at, one in enumerate(said)]
    return calibrate(labels, said, QUICK), labels, said


def test_a_judge_that_is_always_right_has_intervals_of_some_width() -> None:
    """29 verdicts of a kind without an error leave up to 12 % of it open at 97.5 % (Clopper and Pearson: 1 - 0.025 ** (1/29))."""
    items = [item(n, n % 2 == 0, group=f"g{n}") for n in range(58)]
    labels = build_labelled_set(enumerate(items, 1), source="made")
    said = [Prediction(id=one.id, criterion="c", raw=float(one.passes), model="m") for one in items]
    found = calibrate(labels, said, QUICK).fits[0].discrimination
    assert found is not None
    assert found.use == "useful"
    assert (found.balanced_accuracy.low, found.balanced_accuracy.high) == (pytest.approx(0.8806, abs=1e-4), 1.0)
    assert (found.kappa.low, found.kappa.high) == (pytest.approx(0.7612, abs=1e-4), 1.0)
    assert (found.auroc.low, found.auroc.high) == (pytest.approx(0.8806, abs=1e-4), 1.0)


@pytest.mark.parametrize("name", JUDGES)
def test_what_200_labels_say_of_a_judge(name: str) -> None:
    use = JUDGES[name][0]
    run, _, _ = run_judge(name)
    (fit,), (judge,) = run.fits, run.judges
    assert fit == judge.fit
    assert judge.use == use
    if use == "useful":
        assert refuse_useless(run.fits) == ([fit], [])
        return
    assert build_row(judge)[1] == use
    assert build_row(judge)[4:6] == ("none", "none")
    assert describe_use(judge).startswith(f"{use}: ")
    text = render_report_markdown(run)
    assert text.index(f"{use}: ") < text.index("## Labels")
    assert "rates corrected by labels" not in text
    assert fit.guarantee is None
    with pytest.raises(InputError, match=f"its judge is {use}: "):
        refuse_useless([fit])
    good = make_fit()
    assert refuse_useless([good, fit])[0] == [good]
    applied = calibrate_value([fit], fit.binding, "c", 0.9)
    assert (applied.calibration.status, applied.value, applied.calibration.threshold) == ("uncalibrated", 0.9, None)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"use": "useful"}, "its figures make the judge 'inverted'"),
        ({"use": "useless"}, "its figures make the judge 'inverted'"),
        ({"p_value": 2}, "less than or equal to 1"),
    ],
)
def test_the_verdict_in_a_file_must_follow_from_its_figures(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        make_fit(discrimination={**USES["inverted"], **changes})


def test_a_fit_that_is_not_useful_guarantees_nothing() -> None:
    for found in (make_discrimination("useless"), None):
        with pytest.raises(ValidationError, match="guarantees nothing"):
            make_fit(discrimination=found, guarantee={"share": 0.9, "passes_from": 0.5})


# How many labels would tell.


@pytest.mark.parametrize(("passing", "failing", "groups", "more", "among"), TABLES["floors"])
def test_below_the_floor_nothing_is_said_however_right_it_is(
    passing: int, failing: int, groups: int, more: int, among: str
) -> None:
    counts = {"passing": passing, "failing": failing, "groups": groups}
    found = make_discrimination("useful", **counts, verdict="cannot tell")
    assert found.count_more() == more
    assert found.explain().startswith(f"cannot tell: label {more} more, {among} among them (AUROC 0.800")
    with pytest.raises(ValidationError):
        make_discrimination("useful", **counts)


def test_one_kind_of_label_tells_nothing() -> None:
    items = [item(n, True, group=str(n)) for n in range(120)]
    said = [Prediction(id=one.id, criterion="c", raw=0.9, model="m") for one in items]
    (fit,) = calibrate(build_labelled_set(enumerate(items, 1), source="s"), said, QUICK).fits
    assert fit.refusal.startswith("cannot tell: label 10 more, at least 10 failures among them (AUROC undefined")


# Chance.


def test_the_permutation_test_by_hand_and_by_groups() -> None:
    """Of the 20 ways to choose 3 of 6, one ranks as well; in 3 pairs alike, one way of 3 does."""
    rising, labels = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [False] * 3 + [True] * 3
    assert compute_ranking_p(rising, labels, list("abcdef"), count=4000) == pytest.approx(1 / 20, abs=0.01)
    paired = [False, False, False, False, True, True]
    assert compute_ranking_p(rising, paired, list("aabbcc"), count=4000) == pytest.approx(1 / 3, abs=0.03)
    assert compute_ranking_p([0.5] * 6, labels, list("abcdef")) == 1.0
    assert compute_ranking_p(rising, [True] * 6, list("abcdef")) is None


class Cell(NamedTuple):
    """Judges that know nothing: so many labels in groups of `size`, alike on both sides as far as `alike` says."""

    labels: int
    rate: float
    size: int
    levels: int
    alike: float


CELLS = (
    Cell(200, 0.5, 1, 2, 0.0),
    Cell(200, 0.8, 1, 100, 0.0),
    Cell(200, 0.5, 4, 5, 0.7),
    Cell(60, 0.5, 1, 5, 0.0),
    Cell(100, 0.8, 5, 100, 0.8),
    Cell(60, 0.7, 5, 2, 0.9),
)
SEEDS = 400 if WHOLE else 8


def judge_at_random(cell: Cell, seed: int) -> Discrimination | None:
    rng = random.Random(f"{cell}{seed}")  # noqa: S311
    items, raw = [], dict[tuple[str, str], tuple[float, ...]]()
    for group in range(cell.labels // cell.size):
        label, value = rng.random() < cell.rate, rng.random()
        for at in range(cell.size):
            own = label if rng.random() < cell.alike else rng.random() < cell.rate
            items.append(item(group * cell.size + at, own, group=f"g{group:04}"))
            said = value if rng.random() < cell.alike else rng.random()
            raw[items[-1].key] = (int(said * cell.levels) / cell.levels,)
    recorded = JudgePredictions(Binding("j", "0" * 64, "m"), "c", raw)
    options = replace(QUICK, guarantee=None, reported_shares=())
    bench = build_bench(build_labelled_set(enumerate(items, 1), source="s"), recorded, options)
    return None if bench is None else measure_discrimination(list(bench.values.values()))


@pytest.mark.whole
def test_a_judge_that_knows_nothing_is_rarely_called_useful() -> None:
    found: dict[Cell, Counter[str]] = {}
    for cell in CELLS:
        judged = [judge_at_random(cell, seed) for seed in range(SEEDS)]
        found[cell] = Counter(one.use for one in judged if one is not None)
        print(tuple(cell), dict(found[cell]))  # noqa: T201 (for the docs)
    accepted = [counts["useful"] for counts in found.values()]
    most = 0.05 * SEEDS + 2 * np.sqrt(0.05 * 0.95 * SEEDS)
    assert max(accepted) <= most
    assert sum(accepted) <= 0.05 * SEEDS * len(CELLS)
    assert found[CELLS[0]]["useless"] >= 0.9 * SEEDS
