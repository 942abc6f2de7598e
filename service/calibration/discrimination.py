"""Measure whether a judge tells held-out passes from failures; `service.core.judging.fits.usefulness` has the rule."""

from __future__ import annotations

from service.calibration.bench import Bench
from service.calibration.figures import Resampling, measure_statistics, read_metrics
from service.core.judging.fits.usefulness import Discrimination
from service.stats.permutation import compute_ranking_p
from service.stats.tallies import Floats, TallyRows, auroc, build_confusion_at


def measure_discrimination(bench: Bench) -> Discrimination:
    """Measure a judge on its held-out items. Draws and seed are fixed: no option of a run makes a judge useful."""
    items = bench.held_out
    labels, groups = [item.passes for item in items], [item.group for item in items]
    raw = [bench.values[item.key].raw for item in items]
    scores, verdicts = TallyRows(raw, labels), TallyRows([bench.values[item.key].passed for item in items], labels)

    def statistics(weights: Floats) -> dict[str, float | None]:
        table = build_confusion_at(verdicts.tally(weights), 1.0)
        ranking = auroc(scores.tally(weights))
        return {"auroc": ranking, "balanced_accuracy": table.balanced_accuracy, "kappa": table.kappa}

    metrics = read_metrics(measure_statistics(statistics, groups, Resampling()))
    p_value = compute_ranking_p(raw, labels, groups)
    found = Discrimination.model_construct(
        use="cannot tell",
        passing=sum(labels),
        failing=len(labels) - sum(labels),
        groups=len(set(groups)),
        auroc=metrics["auroc"],
        balanced_accuracy=metrics["balanced_accuracy"],
        kappa=metrics["kappa"],
        p_value=None if p_value is None else round(p_value, 6),
    )
    return found.model_copy(update={"use": found.judge_use()})
