"""The pass rate of traffic: what goes into it, and that the judge helps where it knows something."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.calibration.labels import build_labelled_set
from service.calibration.rate import compute_pass_rates
from service.cli.commands.calibrate.rate import show_rates
from service.cli.exits import ExitCode
from service.cli.labelled import Sources
from service.errors import InputError
from service.stats.corrected import infer_from_labels, ppi
from tests.calibration.label_sets import drawn

LABELS, PREDICTIONS = drawn(1000, judges=(0.9,))
FEW = build_labelled_set([(n, item) for n, item in enumerate(LABELS.items[:100], 1)], source="few")


def test_the_rate_is_that_of_the_labels_with_the_judges_word_on_the_rest() -> None:
    (found,) = compute_pass_rates(FEW, PREDICTIONS)
    verdicts = [item.passes for item in FEW.items]
    raw = {one.id: one.raw for one in PREDICTIONS}
    said = [raw[item.id] for item in FEW.items]
    rest = [raw[item.id] for item in LABELS.items[100:]]
    assert (found.labelled, found.unlabelled) == (100, 900)
    groups = [item.group for item in FEW.items]
    assert found.corrected == ppi(verdicts, said, rest, (groups, [None] * 900))
    assert found.humans == infer_from_labels(verdicts, groups)
    assert found.naive == sum(value >= 0.75 for value in raw.values()) / 1000
    assert found.corrected.width < 0.95 * found.humans.width


def test_predictions_say_of_which_conversation_an_item_without_a_label_is() -> None:
    """Here the judge said the same of all that is in one: the interval is wider, the rate the same."""
    told = [one.model_copy(update={"group": f"said {one.raw}"}) for one in PREDICTIONS]
    (plain,), (found,) = compute_pass_rates(FEW, PREDICTIONS), compute_pass_rates(FEW, told)
    verdicts, raw = [item.passes for item in FEW.items], {one.id: one.raw for one in PREDICTIONS}
    said, rest = ([raw[item.id] for item in part] for part in (FEW.items, LABELS.items[100:]))
    groups = [item.group for item in FEW.items], [f"said {value}" for value in rest]
    assert found.corrected == ppi(verdicts, said, rest, groups)
    assert found.corrected.width > plain.corrected.width
    assert found.corrected.value == plain.corrected.value


def test_what_to_label_next_has_no_label_yet_and_does_not_depend_on_the_judge() -> None:
    (found,) = compute_pass_rates(FEW, PREDICTIONS, count=30)
    turned = [one.model_copy(update={"raw": 1 - one.raw}) for one in reversed(PREDICTIONS)]
    assert len(set(found.label_next)) == 30
    assert not {item.id for item in FEW.items} & set(found.label_next)
    assert compute_pass_rates(FEW, turned, count=30)[0].label_next == found.label_next


def test_labels_that_may_not_correct_what_they_are_to_correct() -> None:
    (found,) = compute_pass_rates(FEW, PREDICTIONS)
    assert found.sample_shift is not None
    assert found.sample_shift.p_value > 0.05
    assert found.period_shift is None
    known = {item.id for item in FEW.items}
    other = [one if one.id in known else one.model_copy(update={"raw": one.raw / 2}) for one in PREDICTIONS]
    (moved,) = compute_pass_rates(FEW, other)
    assert moved.sample_shift is not None
    assert moved.sample_shift.p_value < 1e-4
    assert moved.sample_shift.high < 0


def test_a_judge_that_changed_between_periods() -> None:
    items = [
        one.model_copy(update={"period": "2026-04" if n < 200 else "2026-05"})
        for n, one in enumerate(LABELS.items[:400])
    ]
    late = {item.id for item in items[200:]}
    some = build_labelled_set(enumerate(items, 1), source="some")
    (same,) = compute_pass_rates(some, PREDICTIONS)
    assert same.period_shift is not None
    assert (same.period_shift.latest, same.period_shift.labels, same.period_shift.earlier) == ("2026-05", 200, 200)
    assert same.period_shift.shift.p_value > 0.01
    milder = [one.model_copy(update={"raw": min(1.0, one.raw + 0.3)}) if one.id in late else one for one in PREDICTIONS]
    (changed,) = compute_pass_rates(some, milder)
    assert changed.period_shift is not None
    assert changed.period_shift.shift.p_value < 1e-3


def test_what_to_label_next_by_strata() -> None:
    (found,) = compute_pass_rates(FEW, PREDICTIONS, count=30)
    plan = found.plan
    assert sum(one.items for one in plan.strata) == 1000
    assert sum(one.labels for one in plan.strata) == 100
    assert sum(map(len, plan.next)) == 30
    raw = {one.id: one.raw for one in PREDICTIONS}
    for stratum, chosen in zip(plan.strata, plan.next, strict=True):
        assert all(stratum.low <= raw[name] <= stratum.high for name in chosen)
    assert not {item.id for item in FEW.items} & {name for chosen in plan.next for name in chosen}
    assert plan.rate is not None
    assert plan.width <= plan.width_at_random < plan.rate.high - plan.rate.low


@pytest.mark.parametrize(("labelled", "why"), [(1, "1 labelled items"), (4, "two groups"), (1000, "and 0 others")])
def test_a_rate_that_cannot_be_told(labelled: int, why: str) -> None:
    some = build_labelled_set([(n, item) for n, item in enumerate(LABELS.items[:labelled], 1)], source="some")
    with pytest.raises(InputError, match=why):
        compute_pass_rates(some, PREDICTIONS)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels, said = tmp_path / "labels.jsonl", tmp_path / "said.jsonl"
    labels.write_text("".join(f"{item.model_dump_json()}\n" for item in FEW.items), "utf-8")
    said.write_text("".join(f"{one.model_dump_json()}\n" for one in PREDICTIONS), "utf-8")
    assert show_rates(Sources(labels, [said]), output_format="json") == ExitCode.PASSED
    (rate,) = json.loads(capsys.readouterr().out)
    (want,) = compute_pass_rates(FEW, PREDICTIONS)
    assert rate["corrected"]["value"] == pytest.approx(want.corrected.value)
    show_rates(Sources(labels, [said]))
    out = capsys.readouterr().out
    assert f"corrected   {want.corrected.value:.3f} [" in out
    assert "no sign that the labels come from other traffic" in out
    assert "or label next by stratum, 20 items" in out
    labels.write_text(FEW.items[0].model_dump_json(), "utf-8")
    with pytest.raises(InputError, match="no predictions"):
        show_rates(Sources(labels))
