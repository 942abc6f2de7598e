"""Fits are read strictly, and grow old by the shell's clock."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from service.core.calibrate import Fit
from service.errors import SettingsError
from service.io.bootstrap import engine_of
from service.io.fits import AgingFits, read_fits, today
from service.io.settings import Settings

MADE = date(2026, 3, 1)


def fit(**changes: object) -> Fit:
    fields = {
        "judge": "j",
        "judge_digest": "a" * 64,
        "model": "m",
        "criterion": "c",
        "method": "identity",
        "calibrator": {"kind": "identity"},
        "origin": "human",
        "labels": 100,
        "groups": 50,
        "enough": True,
        "domain": (0.0, 1.0),
        "threshold": 0.5,
        "data": "b" * 64,
        "made": MADE,
    }
    return Fit.model_validate({**fields, **changes})


AGES = [
    (90, 0, False),
    (90, 90, False),
    (90, 91, True),
    (1, 2, True),
    (0, 36_500, False),
    (90, -5, False),
]


@pytest.mark.parametrize(("most", "age", "stale"), AGES)
def test_a_fit_is_stale_beyond_its_age(most: int, age: int, stale: bool) -> None:
    fits = AgingFits([fit(), fit(made=None)], max_age_days=most, today=lambda: MADE + timedelta(days=age))
    assert [one.stale for one in fits] == [stale, False]


def test_it_becomes_so_while_the_process_runs() -> None:
    days = iter([MADE, MADE + timedelta(days=90), MADE + timedelta(days=91), MADE + timedelta(days=91)])
    fits = AgingFits([fit()], max_age_days=90, today=lambda: next(days))
    assert [[one.stale for one in fits] for _ in range(4)] == [[False], [False], [True], [True]]
    assert len(fits) == 1


@pytest.mark.parametrize(("days", "stale"), [("", True), ("0", False), ("400", False)])
def test_the_age_is_a_setting(tmp_path: Path, days: str, stale: bool) -> None:
    folder = tmp_path / "fits"
    folder.mkdir()
    old, new = fit(made=today() - timedelta(days=100)), fit(model="n", made=today())
    for one in (old, new):
        (folder / f"{one.model}.json").write_text(one.model_dump_json(), "utf-8")
    settings = Settings.from_env({"CALLGRADE_HOME": str(tmp_path), "CALLGRADE_FIT_MAX_AGE_DAYS": days})
    assert [one.stale for one in engine_of(settings).fits] == [stale, False]


def test_a_file_that_is_no_fit_is_named(tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text(fit().model_dump_json().replace('"labels":100', '"labels":-1'), "utf-8")
    with pytest.raises(SettingsError, match=r"odd\.json: /labels"):
        read_fits([tmp_path])
    assert read_fits([tmp_path / "nowhere"]) == ()
