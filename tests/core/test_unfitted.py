"""Judges that fits leave open are named before anybody waits for their verdict."""

from __future__ import annotations

from typing import Any

import pytest

from service.core.judging.fit_warnings import warn_unfitted
from service.core.judging.judges import Judge
from service.core.judging.questions import ASSEMBLY
from tests.fits import make_fit

JUDGE = Judge.model_validate({"id": "fair", "level": "step", "question": "Is it?", "scale": {"yes": 1, "no": 0}})
JURY = Judge.model_validate({**JUDGE.model_dump(), "models": ["openai/a", "openai/b"]})
FIT: dict[str, Any] = {
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
    ([{"judge_digest": JURY.digest, "model": "a+b"}], JURY, ["openai/c"], []),
    ([{"judge_digest": JURY.digest, "model": "a"}], JURY, ["openai/a"], ["openai/a + openai/b says"]),
]


@pytest.mark.parametrize(("changes", "judge", "models", "expected"), CASES)
def test_what_stays_open_is_said(
    changes: list[dict[str, Any]], judge: Judge, models: list[str], expected: list[str]
) -> None:
    fits = [make_fit(**{**FIT, **change}) for change in changes]

    def list_models(*_: str) -> list[str]:
        return models

    found = list(warn_unfitted(fits, [judge], list_models))
    assert len(found) == len(expected)
    assert all(part in sentence for part, sentence in zip(expected, found, strict=True))
