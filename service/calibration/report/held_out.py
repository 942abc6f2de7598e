"""The report on one judge from its held-out items, each under the map that has not seen it, and the fit that is served."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from importlib.metadata import version
from math import fsum

import numpy as np

from service.calibration.bench import Bench
from service.calibration.figures import (
    Figures,
    HeldOutItem,
    Resampling,
    compute_human_figures,
    compute_judge_figures,
    read_metrics,
)
from service.calibration.fitting import build_coverage_curve, explain_too_few
from service.calibration.labelling import read_subject_trace
from service.calibration.labels import LabelledItem
from service.calibration.options import ReportOptions
from service.calibration.results import Disagreement, JudgeReport, Promise, Retest, ReviewBand
from service.core.judging.fits.fit import Fit
from service.core.judging.fits.usefulness import Discrimination
from service.errors import InputError
from service.stats.corrected import code_groups
from service.stats.intervals import DRAWS, SEED, bound_ratio
from service.stats.rates import Measure, RatePart
from service.stats.tallies import Floats, LabelTally, build_reliability, build_tally

MAX_TEXT_CHARS = 400
"""The most characters of a text that a report shows."""
MAX_ANNOTATORS_SHOWN = 6


def build_judge_report(bench: Bench, options: ReportOptions) -> JudgeReport:
    """Build the report on the judge from its held-out items, with the fit that is served."""
    rows, own = list(bench.values.values()), bench.recorded.threshold
    raw_rows = [replace(row, value=row.raw, passed=row.raw >= own) for row in rows]
    after = compute_judge_figures(rows, options.resampling)
    humans = compute_human_figures(bench.held_out, options.resampling)
    discrimination = measure_discrimination(rows)
    if discrimination.use != "useful":  # nothing is promised
        options = replace(options, guarantee=None, reported_shares=())
    known = sum(item.criterion == bench.recorded.criterion for item in bench.labels.items)
    folds = [([bench.values[item.key] for item in fold.items], fold.fitted.threshold) for fold in bench.folds]
    return JudgeReport(
        name=bench.name,
        fit=_build_fit(bench, options, (after, humans), discrimination),
        why=bench.why,
        missing=known - len(bench.items),
        own_threshold=own,
        own=compute_judge_figures(raw_rows, options.resampling),
        after=after,
        humans=humans,
        table_before=build_reliability(_tally(raw_rows)),
        table_after=build_reliability(_tally(rows)),
        curve=build_coverage_curve([(_tally(part), threshold) for part, threshold in folds]),
        review_band=_build_review_band(bench),
        retest=measure_retest(
            [(item.group, tuple(map(bench.served.calibrator.apply, bench.raw[item.key]))) for item in bench.items],
            bench.served.threshold,
            draws=options.resampling.draws,
        ),
        worst=tuple(_list_disagreements(bench, options.max_disagreements)),
        items=tuple(rows),
        only_fitted=tuple([item.id for item in bench.fitted if item.key not in bench.values]),
        promises=tuple([measure_promise(bench, share, options) for share in options.shares]),
        cost_usd=bench.price,
    )


def _build_fit(
    bench: Bench, options: ReportOptions, figures: tuple[Figures, Figures | None], found: Discrimination
) -> Fit:
    """Build the fit that is served, with its figures on held-out items and its guarantee."""
    raw = [bench.raw[item.key][0] for item in bench.fitted]
    guarantee = None if options.guarantee is None else bench.served.promises[options.guarantee]
    after, humans = figures
    strata = {item.stratum for item in bench.fitted}
    answers = [[item.model_dump(mode="json"), list(bench.raw[item.key])] for item in bench.items]
    return Fit(
        **bench.recorded.binding.fields,
        weights=dict(bench.recorded.weights),
        criterion=bench.recorded.criterion,
        method=bench.method,
        calibrator=bench.served.calibrator,
        origin=bench.origin,
        labels=len(bench.fitted),
        groups=len({item.group for item in bench.fitted}),
        enough=not explain_too_few(bench.fitted) and bench.method != "identity",
        domain=(min(raw), max(raw)),
        strata=() if "" in strata else tuple(sorted(strata)),
        threshold=bench.served.threshold,
        review_band=bench.served.band if guarantee is None else None,
        guarantee=guarantee,
        discrimination=found,
        statistics=read_metrics(after.measures),
        humans=read_metrics(humans.measures if humans else {}),
        data=sha256(json.dumps(answers, sort_keys=True, separators=(",", ":")).encode()).hexdigest(),
        seed=options.seed,
        libraries=list_libraries(),
        notes=(bench.why,) if bench.why else (),
        made=options.made,
    )


def list_libraries() -> dict[str, str]:
    """Return the versions of the libraries that figures and fits were made with."""
    return {name: version(name) for name in ("numpy", "scipy")}


def _tally(rows: Sequence[HeldOutItem]) -> LabelTally:
    return build_tally([row.value for row in rows], [row.label for row in rows])


def _find_last_text(item: LabelledItem) -> str:
    """Find the last text of the model in the item's trace; empty where it has none, or cannot be read."""
    with suppress(InputError):
        trace = read_subject_trace(None, {"trace": item.trace}) if item.trace else None
        texts = [one.text for one in trace.messages if one.role == "assistant" and one.text] if trace else []
        return texts[-1] if texts else ""
    return ""


def _list_disagreements(bench: Bench, count: int) -> Iterator[Disagreement]:
    """Yield the held-out items with a wrong verdict, those first whose value lies furthest from the label."""
    wrong = [(one, item) for item in bench.held_out if not (one := bench.values[item.key]).right]
    for found, item in sorted(wrong, key=lambda pair: (-abs(pair[0].value - pair[0].label), pair[1].id))[:count]:
        first = bench.recorded.first.get(item.key)
        labels = [
            f"{one.annotator}: {'pass' if one.label else 'fail'}" + (f" ({shorten(one.note)})" if one.note else "")
            for one in item.labels[:MAX_ANNOTATORS_SHOWN]
        ]
        yield Disagreement(
            id=item.id,
            line=bench.labels.lines[item.key],
            labels=tuple(labels),
            raw=found.raw,
            value=found.value,
            answer=shorten(item.answer or _find_last_text(item)),
            reason=shorten(first.reason if first else ""),
        )


def shorten(text: str, limit: int = MAX_TEXT_CHARS) -> str:
    """Return the text, or its two ends with the number of characters left out between them.

    >>> shorten("abcdefghij", 4)
    'ab [6 characters] ij'
    """
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]} [{len(text) - 2 * half} characters] {text[-half:]}"


def _build_review_band(bench: Bench) -> ReviewBand | None:
    if bench.served.band is None:
        return None
    decided = [one.right for one in bench.values.values() if one.decided]
    accuracy = sum(decided) / len(decided) if decided else None
    return ReviewBand(bench.served.band, len(decided) / len(bench.values), accuracy)


def measure_promise(bench: Bench, share: float, options: ReportOptions) -> Promise:
    """Measure what is accepted of held-out items for this share of agreement, and how far it agrees."""
    accepted, draws = bench.list_accepted(share), options.resampling.draws
    kept = {one.id for one in accepted}

    def measure_agreement(*sides: bool) -> Measure:
        return _measure_rate([RatePart(one.group, one.right) for one in accepted if one.passed in sides], draws)

    return Promise(
        bench.served.promises[share],
        _measure_rate([RatePart(one.group, one.id in kept) for one in bench.values.values()], draws),
        measure_agreement(True, False),
        len(accepted),
        measure_agreement(True),
        measure_agreement(False),
    )


def measure_retest(
    asked: Iterable[tuple[str, tuple[float, ...]]], threshold: float, *, draws: int = DRAWS
) -> Retest | None:
    """Measure items with two or more answers; None where there are none. Values from `threshold` upwards pass.

    `asked`: the group of each item, and the value of each answer. Labels play no part, so items that were fitted count as well.
    """
    flips: list[RatePart] = []
    for group, values in asked:
        n, yes = len(values), sum(value >= threshold for value in values)
        if n > 1:
            flips.append(RatePart(group, 2 * yes * (n - yes) / (n * (n - 1))))  # of all pairs of answers
    return Retest(len(flips), _measure_rate(flips, draws)) if flips else None


def _measure_rate(parts: Sequence[RatePart], draws: int) -> Measure:
    """Measure the mean, with its interval by groups if any are drawn; undefined for no parts."""
    if not parts:
        return Measure(None)
    rate = fsum(part.hits for part in parts) / len(parts)
    return Measure(rate, *bound_ratio(parts)) if draws else Measure(rate)


# Whether it tells passes from failures; `service.core.judging.fits.usefulness` has the rule.


def measure_discrimination(items: Sequence[HeldOutItem]) -> Discrimination:
    """Measure a judge on its held-out items. Draws and seed are fixed: no option of a run makes a judge useful."""
    labels, groups, raw = [one.label for one in items], [one.group for one in items], [one.raw for one in items]
    rows = [replace(one, value=one.raw, stratum="") for one in items]
    metrics = read_metrics(compute_judge_figures(rows, Resampling()).measures)
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


def compute_ranking_p(
    scores: Sequence[float], labels: Sequence[bool], groups: Sequence[str], *, count: int = DRAWS
) -> float | None:
    """Compute the one-sided p-value of an AUROC as high if labels had nothing to do with scores; None for labels of one kind.

    Each draw shuffles the groups and lays their labels end to end over the items: labels of a group stay neighbours, and groups
    of equal size are permuted exactly. The observed order is one draw (Phipson and Smyth 2010, SAGMB 9:39).
    """
    if len(set(labels)) < 2:
        return None
    codes = code_groups(groups)
    order = np.argsort(codes, kind="stable")
    codes, passes = codes[order], np.asarray(labels, dtype=np.float64)[order]
    _, level, sizes = np.unique(np.asarray(scores, dtype=np.float64), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(sizes) - sizes / 2)[level][order]  # AUROC grows with the sum of the passes' middle ranks
    observed, rng, reached = float(ranks @ passes), np.random.default_rng(SEED), 1
    for _ in range(count):
        keys: Floats = rng.random(len(set(groups)))
        shuffled = np.argsort(keys[codes], kind="stable")
        reached += float(ranks @ passes[shuffled]) >= observed
    return reached / (count + 1)
