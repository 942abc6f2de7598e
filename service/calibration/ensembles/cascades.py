"""Judges in sequence: each is asked only about what the previous one leaves to it, and people about what remains at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import fsum

from service.calibration.bench import Bench
from service.calibration.guarantees import AcceptedItem, measure_shares
from service.calibration.labels import Key
from service.calibration.options import ReportOptions
from service.calibration.results import CascadeReport, CascadeStage


def build_cascade(benches: Sequence[Bench], share: float, options: ReportOptions, *, asked_for: bool) -> CascadeReport:
    """Report what the stages decide together; each but the first was tested on what earlier ones leave."""
    items = [item.key for item in benches[0].held_out if all(item.key in bench.values for bench in benches)]
    left, agreeing, stages = list(items), set[Key](), list[CascadeStage]()
    for bench in benches:
        stage, decided = _build_stage(bench, share, items, left, options)
        stages.append(stage)
        agreeing |= {item.key for item in bench.held_out if item.key in decided and bench.agrees(item)}
        left = [key for key in left if key not in decided]
    groups = {item.key: item.group for item in benches[0].held_out}
    open_ones = set(left)
    accepted = [AcceptedItem(groups[key], key not in open_ones, key in agreeing) for key in items]
    coverage, agreement = measure_shares(accepted, options.resampling)
    return CascadeReport(
        benches[0].criterion, share, tuple(stages), coverage, agreement, _sum_costs(stages), asked_for=asked_for
    )


def _build_stage(
    bench: Bench, share: float, items: Sequence[Key], left: Sequence[Key], options: ReportOptions
) -> tuple[CascadeStage, frozenset[Key]]:
    decided = bench.list_accepted(share) & frozenset(left)
    decided_items = [item for item in bench.held_out if item.key in decided]
    accepted = [AcceptedItem(item.group, True, bench.agrees(item)) for item in decided_items]
    stage = CascadeStage(
        judge=bench.name,
        reached=len(left) / len(items),
        decided=len(decided_items) / len(items),
        agreement=measure_shares(accepted, options.resampling)[1],
        guarantee=bench.served.promises[share],
        cost_usd=bench.price,
    )
    return stage, decided


def _sum_costs(stages: Iterable[CascadeStage]) -> float | None:
    costs = [None if stage.cost_usd is None else stage.cost_usd * stage.reached for stage in stages]
    return None if None in costs else fsum([cost for cost in costs if cost is not None])
