"""Maps from raw values to probabilities, and when a fit may be applied."""

from __future__ import annotations

from math import exp
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from service.core.judging.fit_warnings import warn_unfitted
from service.core.judging.fits.fit import Binding, Fit, calibrate_value
from service.core.judging.fits.maps import Calibrator, Identity, Isotonic, Platt
from service.core.judging.judges import Judge
from service.core.judging.questions import ASSEMBLY
from tests.fits import make_fit

DIGEST, OTHER, LOW = "a" * 64, "b" * 64, Platt(slope=4.0, offset=-2.0).apply(0.4)
SHARES = st.floats(0, 1)


@st.composite
def isotonic(draw: st.DrawFn) -> Isotonic:
    raw = sorted(draw(st.sets(SHARES, min_size=1, max_size=8)))
    value = sorted(draw(st.lists(SHARES, min_size=len(raw), max_size=len(raw))))
    return Isotonic(raw=tuple(raw), value=tuple(value))


PLATTS = st.builds(Platt, slope=st.floats(0, 1e6), offset=st.floats(-1e6, 1e6))
MAPS = st.builds(Identity) | PLATTS | isotonic()


@given(MAPS, SHARES, SHARES)
def test_every_map_is_monotone_and_stays_in_its_range(found: Calibrator, a: float, b: float) -> None:
    low, high = found.apply(min(a, b)), found.apply(max(a, b))
    assert 0 <= low <= 1
    assert low <= high + 1e-12


@given(MAPS)
def test_a_map_reads_back_as_the_same_map(found: Calibrator) -> None:
    assert type(found).model_validate_json(found.model_dump_json()) == found


CASES = [
    (Identity(), 0.3, 0.3),
    (Platt(slope=2.0, offset=-1.0), 0.25, 1 / (1 + exp(0.5))),
    (Isotonic(raw=(0.0, 0.5, 1.0), value=(0.1, 0.2, 0.8)), 0.75, 0.5),
    (Isotonic(raw=(0.2, 0.5), value=(0.1, 0.2)), 0.1, 0.1),
    (Isotonic(raw=(0.2, 0.5), value=(0.1, 0.2)), 0.9, 0.2),
    (Isotonic(raw=(0.2, 0.5), value=(0.1, 0.2)), 0.5, 0.2),
]


@pytest.mark.parametrize(("found", "raw", "want"), CASES)
def test_values(found: Calibrator, raw: float, want: float) -> None:
    assert found.apply(raw) == pytest.approx(want)


REFUSED = [
    (Platt, {"slope": -0.1, "offset": 0.0}, "greater than or equal to 0"),
    (Isotonic, {"raw": (0.5, 0.5), "value": (0.1, 0.2)}, "raw must ascend strictly"),
    (Isotonic, {"raw": (0.1, 0.5), "value": (0.3, 0.2)}, "value must not descend"),
    (Isotonic, {"raw": (0.1, 0.5), "value": (0.3,)}, "expected 2 numbers in value, not 1"),
    (Isotonic, {"raw": (), "value": ()}, "at least 1 item"),
    (Isotonic, {"raw": (0.1,), "value": (1.2,)}, "less than or equal to 1"),
]


@pytest.mark.parametrize(("kind", "fields", "why"), REFUSED)
def test_a_map_that_could_not_hold_is_refused(kind: type[Calibrator], fields: dict[str, object], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        kind.model_validate(fields)


def fit(**changes: object) -> Fit:
    bound = {"judge": "result_groundedness", "judge_digest": DIGEST, "model": "m-2026-01-01", "method": "platt"}
    shape = {"calibrator": {"kind": "platt", "slope": 4.0, "offset": -2.0}, "domain": (0.0, 0.9), "threshold": 0.4}
    return make_fit(**{**bound, **shape, "review_band": (0.3, 0.5), **changes})


BINDING = Binding("result_groundedness", DIGEST, "m-2026-01-01")


@pytest.mark.parametrize("lapse", [{}, {"stale": True}, {"enough": False}, {"origin": "constructed"}])
def test_of_several_fits_the_one_with_the_most_labels_counts_and_no_other_where_it_lapses(
    lapse: dict[str, object],
) -> None:
    few, many = fit(), fit(labels=200, **lapse)
    for fits in ([few, many], [many, few]):
        found = calibrate_value(fits, BINDING, "c", 0.5)
        assert (found.calibration.fit, found.calibration.status == "calibrated") == (many.id, not lapse)


def test_a_fit_is_plain_data_and_its_id_is_of_its_content() -> None:
    found = fit()
    again = TypeAdapter(Fit).validate_json(found.model_dump_json())
    assert (again, again.id, again.fingerprint) == (found, found.id, found.fingerprint)
    assert fit(labels=101).id != found.id
    assert fit(libraries={"numpy": "9"}).id == found.id
    assert fit(labels=101).fingerprint == found.fingerprint != fit(criterion="d").fingerprint


STRATA = [
    (("a", "b"), "a", "calibrated"),
    (("a", "b"), "z", "out_of_domain"),
    (("a", "b"), None, "calibrated"),
    ((), "z", "calibrated"),
]


@pytest.mark.parametrize(("strata", "stratum", "status"), STRATA)
def test_a_stratum_that_was_not_fitted_is_out_of_domain(strata: tuple[str, ...], stratum: str, status: str) -> None:
    assert calibrate_value([fit(strata=strata)], BINDING, "c", 0.5, stratum=stratum).calibration.status == status


JURY = {"model": "b+a", "weights": {"a": 0.75, "b": 0.25}, "calibrator": Identity(), "method": "identity"}


WEIGHTS = [({"a": 1.0}, "weights are of a"), ({"a": 0.5, "b": 0.4}, "sum to 0.9"), ({"a": 1.5, "b": -0.5}, "less than")]


@pytest.mark.parametrize(("weights", "why"), WEIGHTS)
def test_weights_are_of_each_model_and_sum_to_one(weights: dict[str, float], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        fit(**{**JURY, "weights": weights})


# Which judges a fit leaves open is told before anybody waits for their verdict.

JUDGE = Judge.model_validate({"id": "fair", "level": "step", "question": "Is it?", "scale": {"yes": 1, "no": 0}})
FAIR_JURY = Judge.model_validate({**JUDGE.model_dump(), "models": ["openai/a", "openai/b"]})
FAIR: dict[str, Any] = {
    "judge": "fair",
    "judge_digest": JUDGE.digest,
    "model": "a-2026-01-01",
    "assembly": ASSEMBLY,
    "criterion": "argument_plausibility",
}

# fits (changes), judge, models -> what each sentence says
CASES: list[tuple[list[dict[str, Any]], Judge, list[str], list[str]]] = [
    ([], JUDGE, ["openai/a"], []),
    ([{}], JUDGE, ["openai/a"], []),
    ([{}], JUDGE, ["openai/b"], ["its fits (a-2026-01-01) are of another model"]),
    ([{}], JUDGE, ["openai/a", "openai/b"], ["fair on argument_plausibility: what openai/b says stays open"]),
    ([{}, {"model": "b"}], JUDGE, ["openai/a", "openai/b"], []),
    ([{"judge": "other"}], JUDGE, ["openai/b"], []),
    ([{"criterion": "x"}], JUDGE, ["openai/b"], ["fair on x: what openai/b says"]),
    ([{"judge_digest": "0" * 64}], JUDGE, ["openai/a"], ["another version of the judge"]),
    ([{"assembly": ASSEMBLY + 1}], JUDGE, ["openai/a"], ["another version of the judge"]),
    ([{"enough": False}], JUDGE, ["openai/a"], ["too few labels"]),
    ([{"stale": True}], JUDGE, ["openai/a"], ["too old"]),
    ([{"stale": True}, {}], JUDGE, ["openai/a"], []),
    ([{"judge_digest": FAIR_JURY.digest, "model": "a+b"}], FAIR_JURY, ["openai/c"], []),
    ([{"judge_digest": FAIR_JURY.digest, "model": "a"}], FAIR_JURY, ["openai/a"], ["openai/a + openai/b says"]),
]


@pytest.mark.parametrize(("changes", "judge", "models", "expected"), CASES)
def test_what_stays_open_is_said(
    changes: list[dict[str, Any]], judge: Judge, models: list[str], expected: list[str]
) -> None:
    fits = [make_fit(**{**FAIR, **change}) for change in changes]

    def list_models(*_: str) -> list[str]:
        return models

    found = list(warn_unfitted(fits, [judge], list_models))
    assert len(found) == len(expected)
    assert all(part in sentence for part, sentence in zip(expected, found, strict=True))
