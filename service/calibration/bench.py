"""One judge on one criterion: its two parts, and what is fitted to the one."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version

from service.calibration.figures import FigureRow, Figures, read_metrics
from service.calibration.fitting import FEWEST, calibrate_tally, choose_band, choose_method, choose_threshold, fit_map
from service.calibration.labels import Key, LabelledItem, LabelledSet, Split, find_origin
from service.calibration.options import ReportOptions
from service.calibration.predictions import JudgePredictions
from service.calibration.splits import split_groups
from service.core.judging.fits import Binding, Calibrator, Fit, Method, Origin
from service.stats.tallies import LabelTally, auroc, tally


@dataclass(frozen=True, slots=True)
class Bench:
    """A judge with its items and the map that was fitted to half of them."""

    name: str
    binding: Binding
    criterion: str
    labels: LabelledSet
    items: tuple[LabelledItem, ...]
    """Those of the criterion that it said something about."""
    raw: Mapping[Key, tuple[float, ...]]
    split: Mapping[str, Split]
    method: Method
    calibrator: Calibrator
    threshold: float
    band: tuple[float, float] | None
    reasons: Mapping[Key, str] = field(default_factory=dict[Key, str])

    def select_part(self, split: Split) -> list[LabelledItem]:
        """The items of one side of the split."""
        return [item for item in self.items if self.split[item.group] == split]

    def value(self, item: LabelledItem) -> float:
        """The calibrated value of its first answer."""
        return self.map_value(self.raw[item.key][0])

    def map_value(self, raw: float) -> float:
        """The calibrated value of a raw one."""
        return self.calibrator.apply(raw).value

    def rows(self, *, among: Collection[Key] | None = None, raw: bool = False) -> list[FigureRow]:
        """The held-out items, all or those among some, with calibrated or raw values."""
        return [
            FigureRow(item.group, item.stratum, self.raw[item.key][0] if raw else self.value(item), item.passes)
            for item in self.select_part("test")
            if among is None or item.key in among
        ]

    @property
    def skill(self) -> float:
        """How well it ranks the fitted items; what the best judge is chosen by."""
        return auroc(tally_items(self.select_part("fit"), self.raw)) or 0.0

    @property
    def origin(self) -> Origin:
        """What its labels are at worst."""
        return find_origin(self.items)

    @property
    def calibrated(self) -> bool:
        """Whether its values may be called calibrated."""
        return not self.why

    @property
    def why(self) -> str:
        """Why they may not; empty where they may."""
        count = len(self.select_part("fit"))
        if count < FEWEST:
            return f"{count} labels were fitted, and fewer than {FEWEST} are too few"
        if self.origin == "constructed":
            return "its labels are constructed, not human"
        return "its value was left as it is" if self.method == "identity" else ""


def tally_items(items: Sequence[LabelledItem], raw: Mapping[Key, tuple[float, ...]]) -> LabelTally:
    """The tally of first answers."""
    return tally([raw[item.key][0] for item in items], [item.passes for item in items])


def build_bench(labels: LabelledSet, recorded: JudgePredictions, options: ReportOptions) -> Bench | None:
    """The judge with its fitted map; None where it has no item to fit or none to be tried on."""
    own = tuple([item for item in labels.items if item.criterion == recorded.criterion])
    items = tuple([item for item in own if item.key in recorded.raw])
    # The split is that of all labelled items, so that judges with gaps are tried on the same ones.
    split = split_groups(own, seed=options.seed, share=options.share)
    part = [item for item in items if split[item.group] == "fit"]
    if not part or len(part) == len(items):
        return None
    found = tally_items(part, recorded.raw)
    method = choose_method(len(part), options.method)
    calibrator = fit_map(method, found)
    mapped = calibrate_tally(found, calibrator)
    threshold = choose_threshold(mapped)
    return Bench(
        name=recorded.name,
        binding=recorded.binding,
        criterion=recorded.criterion,
        labels=labels,
        items=items,
        raw=recorded.raw,
        split=split,
        method=method,
        calibrator=calibrator,
        threshold=threshold,
        band=choose_band(mapped, threshold, least=options.decided),
        reasons=recorded.reasons,
    )


def build_fit(bench: Bench, options: ReportOptions, *, after: Figures, humans: Figures | None) -> Fit:
    """The fit, with what the held-out items say of it."""
    part = bench.select_part("fit")
    raw = [bench.raw[item.key][0] for item in part]
    return Fit(
        judge=bench.binding.judge,
        judge_digest=bench.binding.digest,
        model=bench.binding.model,
        assembly=bench.binding.assembly,
        criterion=bench.criterion,
        method=bench.method,
        calibrator=bench.calibrator,
        origin=bench.origin,
        labels=len(part),
        groups=len({item.group for item in part}),
        enough=len(part) >= FEWEST and bench.method != "identity",
        domain=(min(raw), max(raw)),
        strata=_list_strata(part),
        threshold=bench.threshold,
        abstain=bench.band,
        statistics=read_metrics(after),
        humans=read_metrics(humans),
        data=_compute_digest(bench),
        seed=options.seed,
        libraries=list_libraries(),
        notes=(bench.why,) if bench.why else (),
        made=options.made,
    )


def _list_strata(items: Sequence[LabelledItem]) -> tuple[str, ...]:
    found = {item.stratum for item in items}
    return () if "" in found else tuple(sorted(found))


def list_libraries() -> dict[str, str]:
    """The versions that figures and fits were made with."""
    return {name: version(name) for name in ("numpy", "scipy")}


def _compute_digest(bench: Bench) -> str:
    """sha256 of the items and of what was said of them, in the order of their keys."""
    rows = [[item.model_dump(mode="json"), list(bench.raw[item.key])] for item in bench.items]
    return sha256(json.dumps(rows, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
