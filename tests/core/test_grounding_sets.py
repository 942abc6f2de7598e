"""What code proves and suspects in texts that people wrote without knowing the code: counts, as data."""

from __future__ import annotations

import pytest

from service.reading.packaged_files import read_yaml
from tests.benchmarks.grounding.measure import count_findings
from tests.benchmarks.grounding.rows import DATA, HELD_BACK, SEEN

RATES = read_yaml((DATA / "rates.yaml").read_text("utf-8"), source="rates.yaml")
MOST = 0.02
"""The largest share of right texts that a suspicion may stand against, if it is to leave them open."""
NATURAL = ("right true", "right actions", "right spellings")
"""Right texts that nobody wrote to look wrong."""


def test_rates_are_those_of_the_sets() -> None:
    assert count_findings([SEEN, HELD_BACK]) == RATES, (
        "python -m tests.benchmarks.grounding --write counts again; look at what changed"
    )


@pytest.mark.parametrize("code", sorted(RATES["proved"]))
def test_no_right_text_is_proved_wrong(code: str) -> None:
    assert [kind for kind in RATES["proved"][code] if kind.startswith("right")] == []


@pytest.mark.parametrize("code", sorted(RATES["suspected"]))
def test_a_suspicion_that_opens_is_rare_in_right_texts(code: str) -> None:
    counts, texts = RATES["suspected"][code], RATES["of"]["texts"]
    assert all(counts.get(kind, 0) <= MOST * texts[kind] for kind in NATURAL)
