"""The first section of a report: whether this judge may be used, for what, at what threshold and coverage, and at what cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from service.calibration.report.wording import show_number, show_usd
from service.calibration.results import CalibrationReport, CascadeReport, JudgeReport, Promise
from service.core.judging.fits import explain_useless
from service.reporting.document import Section, Table

MIN_TO_DECIDE = 0.5
"""The share of items from which a judge that decides them alone may do so under its highest promise."""
MIN_COVERAGE = 0.05
SHOWN_SHARES = (0.85, 0.9)
PRICED_ITEMS = 1000
"""The number of items that prices are quoted for."""

HEAD = ("judge", "use it", "kappa", "human", *[f"{share:.0%}" for share in SHOWN_SHARES], f"USD/{PRICED_ITEMS:,}")


def build_usefulness(report: CalibrationReport) -> Section:
    """Build the section: a row for each judge, and what it means."""
    rows = tuple([build_row(judge) for judge in report.all_judges])
    lines = (
        *[f"{one.name} on {one.criterion}: {describe_use(one)}" for one in report.all_judges],
        *list_cascades(report),
    )
    return Section("May I use it?", (Table(HEAD, rows),), text=(EXPLAINED,), lines=lines, level=2)


EXPLAINED = (
    "Kappa: how far it agrees with the labels beyond chance; human: the same for one person with another. 85% and 90%: the "
    "share of items on which its verdict is accepted so that this much of what is accepted, passes and failures together, "
    "agrees with the labels, with 95 % confidence; the rest is for humans or a stronger judge."
)


def build_row(judge: JudgeReport) -> tuple[str, ...]:
    """Build the cells of the columns in `HEAD`."""
    human = judge.humans.of("kappa").value if judge.humans else None
    price = None if judge.cost_usd is None else judge.cost_usd * PRICED_ITEMS
    promises = [show_coverage(find_promise(judge, share)) for share in SHOWN_SHARES]
    kappa = show_number(judge.after.of("kappa").value)
    return (judge.name, name_use(judge), kappa, show_number(human), *promises, show_usd(price))


def find_promise(judge: JudgeReport, share: float) -> Promise | None:
    """Find the promise for one share; None where the report has none."""
    return next((one for one in judge.promises if one.guarantee.share == share), None)


def show_coverage(promise: Promise | None) -> str:
    """Show the share of items accepted; `none` where no threshold keeps the promise."""
    if promise is None:
        return "-"
    return f"{promise.coverage.value or 0.0:.0%}" if promise.guarantee.accepts_any else "none"


def name_use(judge: JudgeReport) -> str:
    """Name in a word or two what the judge may be used for."""
    best = _find_best(judge)
    if _is_useless(judge):
        return "useless"
    if not judge.calibrated:
        return "not yet"
    return "for rates" if best is None else f"for {best.coverage.value or 0:.0%}"


def _is_useless(judge: JudgeReport) -> bool:
    """Whether its AUROC does not lie above 0.5; of an uncalibrated judge, whether the whole interval does not."""
    auroc = judge.after.of("auroc")
    end = auroc.low if judge.calibrated else auroc.high
    return bool(explain_useless(auroc.value, auroc.value if end is None else end))


def _find_best(judge: JudgeReport) -> Promise | None:
    """Find the highest promise under which it decides half of the items, otherwise the one under which it decides most."""
    kept = [one for one in judge.promises if one.guarantee.accepts_any and (one.coverage.value or 0) >= MIN_COVERAGE]
    wide = [one for one in kept if (one.coverage.value or 0) >= MIN_TO_DECIDE]
    if wide:
        return max(wide, key=lambda one: one.guarantee.share)
    return max(kept, key=lambda one: one.coverage.value or 0, default=None)


def describe_use(judge: JudgeReport) -> str:
    """Describe in a sentence or two what the judge may be used for, and on which condition."""
    auroc = judge.after.of("auroc")
    refused = explain_useless(auroc.value, auroc.low)
    if _is_useless(judge):
        return f"useless: {refused}. `callgrade calibrate install` refuses its fit."
    if not judge.calibrated:
        return f"not yet, {judge.why or 'it is uncalibrated'}."
    best = _find_best(judge)
    fit = " ".join(_describe_fit(judge)) + (f" `callgrade calibrate install` refuses it: {refused}." if refused else "")
    if best is None:
        low = min((one.guarantee.share for one in judge.promises), default=0.8)
        return f"use it for rates corrected by labels, not for verdicts: at no threshold would {low:.0%} of them agree. {fit}"
    used = best.coverage.value or 0.0
    return (
        f"use its verdict on {used:.0%} of items ({_describe_sides(best)}) if {best.guarantee.share:.0%} must agree with the "
        f"labels ({show_number(best.agreement.value)} did), and leave {1 - used:.0%} to people. {fit}"
    )


def _describe_sides(promise: Promise) -> str:
    terms = promise.guarantee
    passes = "no pass" if terms.passes_from is None else f"passes from raw {terms.passes_from:.2f}"
    fails = "no failure" if terms.fails_to is None else f"failures to raw {terms.fails_to:.2f}"
    return f"{passes}, {fails}"


def _describe_fit(judge: JudgeReport) -> Iterator[str]:
    """Describe the fit that this run writes."""
    if judge.guarantee is None:
        yield f"Its fit promises nothing: it passes from {judge.threshold:.2f}"
        if judge.review_band:
            low, high = judge.review_band.band
            yield f"and leaves values from {low:.2f} to {high:.2f} to a human"
        yield "(--guarantee makes one that promises)."
        return
    promise = find_promise(judge, judge.guarantee)
    if promise is not None and not promise.guarantee.accepts_any:
        yield f"Its fit was to promise {judge.guarantee:.0%}: no threshold, and it accepts nothing."
        return
    yield f"Its fit promises {judge.guarantee:.0%}."


def list_cascades(report: CalibrationReport) -> Iterator[str]:
    """Yield a sentence for each cascade."""
    for one in report.cascades:
        yield describe_cascade(one)


def describe_cascade(cascade: CascadeReport) -> str:
    """Describe who decides how much, and what is left."""
    stages = ", then ".join([f"{one.judge} {one.decided:.0%}" for one in cascade.stages])
    price = (
        ""
        if cascade.cost_usd is None
        else f", at {show_usd(cascade.cost_usd * PRICED_ITEMS)} USD for {PRICED_ITEMS:,} items"
    )
    use = "" if cascade.asked_for else " (not written: name it with --cascade)"
    left = 1 - (cascade.coverage.value or 0.0)
    return (
        f"One after the other on {cascade.criterion}, at a promise of {cascade.share:.0%}{use}: {stages}; {left:.0%} left for "
        f"humans; {show_number(cascade.agreement.value)} of what is decided agreed{price}."
    )


def build_cascade_sections(cascades: Sequence[CascadeReport]) -> Iterator[Section]:
    """Build a table for each cascade."""
    head = ("stage", "reached by", "decides", "agreed", "passes from", "fails to", f"USD/{PRICED_ITEMS:,}")
    for cascade in cascades:
        rows: list[tuple[str, ...]] = []
        for at, one in enumerate(cascade.stages, 1):
            edges = (one.guarantee.passes_from, one.guarantee.fails_to) if one.guarantee else (None, None)
            price = None if one.cost_usd is None else one.cost_usd * PRICED_ITEMS
            shares = (f"{one.reached:.1%}", f"{one.decided:.1%}", show_number(one.agreement.value))
            rows.append((f"{at}. {one.judge}", *shares, *map(show_number, edges), show_usd(price)))
        title = f"One judge after another on {cascade.criterion}"
        yield Section(title, (Table(head, tuple(rows)),), text=(describe_cascade(cascade),), level=2)
