"""Fits are read strictly, and grow old by the shell's clock."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from service.core.judging.fits.fit import Fit
from service.errors import SettingsError
from service.fits.files import AgingFits, read_fits
from tests.fits import make_fit

MADE = date(2026, 3, 1)


def fit(**changes: object) -> Fit:
    return make_fit(**{"made": MADE, **changes})


AGES = [(90, 0, False), (90, 90, False), (90, 91, True), (1, 2, True), (0, 36_500, False), (90, -5, False)]


@pytest.mark.parametrize(("most", "age", "stale"), AGES)
def test_a_fit_is_stale_beyond_its_age(most: int, age: int, stale: bool) -> None:
    fits = AgingFits([fit(), fit(made=None)], max_age_days=most, today=lambda: MADE + timedelta(days=age))
    assert [one.stale for one in fits] == [stale, False]


def test_it_becomes_so_while_the_process_runs() -> None:
    days = iter([MADE, MADE + timedelta(days=90), MADE + timedelta(days=91), MADE + timedelta(days=91)])
    fits = AgingFits([fit()], max_age_days=90, today=lambda: next(days))
    assert [[one.stale for one in fits] for _ in range(4)] == [[False], [False], [True], [True]]
    assert len(fits) == 1


def test_a_file_that_is_no_fit_is_named(tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text(fit().model_dump_json().replace('"labels":100', '"labels":-1'), "utf-8")
    with pytest.raises(SettingsError, match=r"odd\.json: /labels"):
        read_fits([tmp_path])
    assert read_fits([tmp_path / "nowhere"]) == ()


def test_two_fits_of_the_very_same_judge_are_refused(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(fit(threshold=0.5).model_dump_json(), "utf-8")
    with pytest.raises(SettingsError, match=r"b\.json: a fit of j on c for m, as a\.json is"):
        read_fits([tmp_path])
