"""Judges in sequence: each is asked only about what the previous one leaves to it, and people about what remains at the end."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import NamedTuple

from service.calibration.bench import Bench, build_bench
from service.calibration.guarantees import measure_share
from service.calibration.labels import Key
from service.calibration.options import ReportOptions
from service.calibration.report.held_out import build_judge_report
from service.calibration.results import CascadeReport, CascadeStage
from service.core.judging.fits import Fit


class CascadeRun(NamedTuple):
    """A cascade with the fits of its judges; none where it only shows what a cascade would do."""

    report: CascadeReport
    fits: tuple[Fit, ...]


def build_cascade(stages: Sequence[Bench], share: float, options: ReportOptions) -> CascadeRun:
    """Fit the judges again, each tested on what the earlier ones leave, and report what they decide together."""
    built, left = list[Bench](), None
    for stage in stages:
        again = build_bench(stage.labels, stage.recorded, options, stage.rescore, left=left, stages=len(stages))
        built.append(again or stage)
        rest = built[-1].list_left(share)
        left = rest if left is None else left & rest
    fits: list[Fit] = []
    for bench in built if options.cascade else ():
        fits.append(build_judge_report(bench, options, after_fit=fits[-1].id if fits else None)[1])
    return CascadeRun(_report_cascade(built, share, options), tuple(fits))


def _report_cascade(benches: Sequence[Bench], share: float, options: ReportOptions) -> CascadeReport:
    items = [item for item in benches[0].held_out if all(item.key in bench.values for bench in benches)]
    left, agreeing, stages = {item.key for item in items}, set[Key](), list[CascadeStage]()
    for bench in benches:
        accepted = bench.list_accepted(share) & left
        decided = [item for item in bench.held_out if item.key in accepted]
        right = {item.key for item in decided if bench.agrees(item)}
        stages.append(
            CascadeStage(
                judge=bench.name,
                reached=len(left) / len(items),
                decided=len(decided) / len(items),
                agreement=measure_share([(one.group, one.key in right) for one in decided], options.resampling),
                guarantee=bench.served.promises[share],
                cost_usd=bench.price,
            )
        )
        agreeing |= right
        left -= accepted
    costs = [stage.cost_usd * stage.reached for stage in stages if stage.cost_usd is not None]
    return CascadeReport(
        criterion=benches[0].recorded.criterion,
        share=share,
        stages=tuple(stages),
        coverage=measure_share([(item.group, item.key not in left) for item in items], options.resampling),
        agreement=measure_share(
            [(item.group, item.key in agreeing) for item in items if item.key not in left], options.resampling
        ),
        cost_usd=fsum(costs) if len(costs) == len(stages) else None,
        asked_for=bool(options.cascade),
    )
