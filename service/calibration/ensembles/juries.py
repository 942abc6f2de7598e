"""The judges of a criterion as a jury: the fit it is served by, and what each member adds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from math import fsum
from statistics import fmean, median
from typing import NamedTuple

from service.calibration.bench import Bench, RawValues, build_bench
from service.calibration.ensembles.jury_weights import average_jury, fit_jury_weights, measure_advantage
from service.calibration.figures import Measure
from service.calibration.fitting import explain_too_few
from service.calibration.labels import Key, LabelledItem
from service.calibration.options import ReportOptions
from service.calibration.predictions import JudgePredictions, JuryId
from service.calibration.report.held_out import build_judge_report
from service.calibration.results import JuryMember, JuryReport
from service.core.judging.fits import Binding, Fit


class JuryRun(NamedTuple):
    """A jury with its fit."""

    jury: JuryReport
    fit: Fit
    bench: Bench


def build_juries(benches: Sequence[Bench], listed: Collection[JuryId], options: ReportOptions) -> list[JuryRun]:
    """Build the jury of all judges on each criterion, and the juries that judges list.

    `listed`: the latter; their fits are written in any case.
    """
    runs: list[JuryRun | None] = []
    for criterion in sorted({bench.criterion for bench in benches}):
        candidates = [bench for bench in benches if bench.criterion == criterion]
        listed_benches = [_select(candidates, jury) for jury in sorted(listed) if jury.criterion == criterion]
        runs += [build_jury(members, options, listed=True) for members in listed_benches]
        if candidates not in listed_benches:
            runs.append(build_jury(candidates, options))
    return [one for one in runs if one is not None]


def _select(benches: Sequence[Bench], jury: JuryId) -> list[Bench]:
    return [
        bench
        for bench in benches
        if bench.binding.model in jury.binding.models
        and replace(bench.binding, model="") == replace(jury.binding, model="")
    ]


def build_jury(members: Sequence[Bench], options: ReportOptions, *, listed: bool = False) -> JuryRun | None:
    """Build the jury on the items that all members judged; None for a single member, and where too few items can be fitted."""
    bench = build_jury_bench(members, options)
    if bench is None:
        return None
    best = max(members, key=lambda one: (one.skill, one.name))
    shared = bench.raw.keys()
    gain = measure_advantage(bench.build_rows(), best.build_rows(among=shared), options.resampling)
    report, fit = build_judge_report(bench, options)
    weights = _weigh(members, [item for item in members[0].fitted if item.key in shared])
    jury_report = JuryReport(
        criterion=bench.criterion,
        weights={one.name: weight for one, weight in zip(members, weights, strict=True)},
        best=best.name,
        advantage=gain,
        kept=True if listed else gain.kept,
        report=report,
        asked=listed,
        members=tuple(measure_members(members, weights, bench, options)),
        price=_add_prices(members),
        latency_ms=_find_latency(members, shared, max),
        agreement=_compute_agreement(bench, shared),
        unanimous=_compute_unanimity(members, shared),
    )
    return JuryRun(jury_report, fit, bench)


def build_jury_bench(members: Sequence[Bench], options: ReportOptions) -> Bench | None:
    """Fit the jury as one judge, on the items that all members judged; None as for `build_jury`."""
    if len(members) < 2:
        return None
    items = [item for item in members[0].items if all(item.key in bench.raw for bench in members)]
    if explain_too_few(items):
        return None

    def learn(fitted: Sequence[LabelledItem]) -> RawValues:
        return _average(members, _weigh(members, fitted), items)

    shared = {item.key for item in items}
    weights = _weigh(members, [item for item in members[0].fitted if item.key in shared])
    recorded = JudgePredictions(
        _build_binding(members, weights),
        members[0].criterion,
        _average(members, weights, items),
        f"jury of {len(members)}",
        costs=_add_costs(members, shared),
        weights=_name_weights(members, weights),
    )
    return build_bench(replace(members[0].labels, items=tuple(items)), recorded, options, learn)


def _weigh(members: Sequence[Bench], items: Sequence[LabelledItem]) -> tuple[float, ...]:
    raw = [[bench.raw[item.key][0] for bench in members] for item in items]
    return fit_jury_weights(raw, [item.passes for item in items])


def _average(members: Sequence[Bench], weights: Sequence[float], items: Sequence[LabelledItem]) -> RawValues:
    return {item.key: (average_jury(weights, [bench.raw[item.key][0] for bench in members]),) for item in items}


def _build_binding(members: Sequence[Bench], weights: Sequence[float]) -> Binding:
    """Bind the jury: models that one judge asks are that judge with all of them; several judges bind with their weights."""
    bindings = [bench.binding for bench in members]
    models = "+".join(one.model for one in bindings)
    if _are_of_one_judge(members):
        return replace(bindings[0], model=models)
    parts = [f"{one.fingerprint}:{weight:.12f}" for one, weight in zip(bindings, weights, strict=True)]
    return Binding("jury", Binding("jury", "+".join(parts), models).fingerprint, models)


def _are_of_one_judge(members: Sequence[Bench]) -> bool:
    return len({replace(bench.binding, model="") for bench in members}) == 1


def _name_weights(members: Sequence[Bench], weights: Sequence[float]) -> dict[str, float]:
    """Return the weight of each model, for serving the judge that lists them; none where they belong to several judges."""
    if not _are_of_one_judge(members):
        return {}
    return {bench.binding.model: weight for bench, weight in zip(members, weights, strict=True)}


def _add_costs(members: Sequence[Bench], shared: Iterable[Key]) -> dict[Key, float]:
    """Return what all members together cost, for the items where every cost is known."""
    return {
        key: fsum([one.costs[key] for one in members]) for key in shared if all(key in one.costs for one in members)
    }


def _add_prices(members: Sequence[Bench]) -> float | None:
    prices = [one.price for one in members]
    return None if None in prices else fsum([price for price in prices if price is not None])


def _find_latency(
    members: Sequence[Bench], keys: Iterable[Key], choose: Callable[[Iterable[float]], float]
) -> float | None:
    """Return the median time of an answer in ms: for members asked at once, the longest of them; None where unknown."""
    known = [one.recorded.latencies for one in members if one.recorded is not None]
    times_ms = [choose(times[key] for times in known) for key in keys if all(key in times for times in known)]
    return median(times_ms) if times_ms else None


def _compute_agreement(bench: Bench, keys: Collection[Key]) -> float | None:
    held_out = [item for item in bench.held_out if item.key in keys]
    return fmean([bench.agrees(item) for item in held_out]) if held_out else None


def _compute_unanimity(members: Sequence[Bench], keys: Iterable[Key]) -> float | None:
    """Return the share of held-out items on which all members agree."""
    verdicts = [
        {one.values[key].passed for one in members} for key in keys if all(key in one.values for one in members)
    ]
    return fmean([len(member_verdicts) == 1 for member_verdicts in verdicts]) if verdicts else None


def measure_members(
    members: Sequence[Bench], weights: Sequence[float], jury: Bench, options: ReportOptions
) -> Iterable[JuryMember]:
    """Measure what each member costs, how far it agrees with the labels, and how much better the jury is for having it.

    The gain is paired, on held-out items: the jury's Brier score against that of a jury of the other members, reweighted.
    """
    shared = jury.raw.keys()
    plain = replace(options, guarantee=None, reported_shares=())
    for place, (one, weight) in enumerate(zip(members, weights, strict=True)):
        rest = [*members[:place], *members[place + 1 :]]
        smaller = rest[0] if len(rest) == 1 else build_jury_bench(rest, plain) if options.resampling.draws else None
        gain = Measure(None) if smaller is None else _measure_gain(jury, smaller, options)
        yield JuryMember(
            name=one.name,
            weight=weight,
            price=one.price,
            latency_ms=_find_latency([one], shared, max),
            agreement=_compute_agreement(one, shared),
            gain=gain,
        )


def _measure_gain(jury: Bench, smaller: Bench, options: ReportOptions) -> Measure:
    return measure_advantage(jury.build_rows(), smaller.build_rows(among=jury.raw.keys()), options.resampling).brier
