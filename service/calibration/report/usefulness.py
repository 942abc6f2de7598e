"""The first section of a report: whether this judge may be used, for what, at what threshold and coverage, and at what cost."""

from __future__ import annotations

from math import ceil

from service.calibration.options import GUARANTEE_ERROR, TESTED_ERROR_PART
from service.calibration.report.wording import show_number, show_usd
from service.calibration.results import CalibrationReport, JudgeReport, Promise
from service.reporting.document import Section, Table
from service.stats.selective import count_verdicts

MIN_TO_DECIDE = 0.5
"""The share of items from which a judge that decides them alone may do so under its highest promise."""
MIN_COVERAGE = 0.05
SHOWN_SHARES = (0.85, 0.9)
PRICED_ITEMS = 1000
"""The number of items that prices are quoted for."""

HEAD = ("judge", "use it", "kappa", "human", *[f"{share:.0%}" for share in SHOWN_SHARES], f"USD/{PRICED_ITEMS:,}")
EXPLAINED = (
    "Kappa: how far it agrees with the labels beyond chance; human: the same for one person with another. 85% and 90%: the "
    "share of items on which its verdict is accepted so that this much of what is accepted, passes and failures together, "
    "agrees with the labels, with 95 % confidence; the rest is for humans."
)


def build_usefulness(report: CalibrationReport) -> Section:
    """Build the section: a row for each judge, and what it means."""
    rows = tuple([build_row(judge) for judge in report.all_judges])
    lines = [f"{one.name} on {one.criterion}: {describe_use(one)}" for one in report.all_judges]
    certified = [one for one in report.all_judges if one.fit.certificates]
    lines += [f"{one.name} on {one.criterion}: {one.fit.certificates[-1].explain()}" for one in certified]
    return Section("May I use it?", (Table(HEAD, rows),), text=(EXPLAINED,), lines=tuple(lines), level=2)


def build_row(judge: JudgeReport) -> tuple[str, ...]:
    """Build the cells of the columns in `HEAD`; the second names in a word or two what the judge may be used for."""
    best = _find_best(judge)
    if judge.use != "useful":
        use = judge.use
    elif judge.why:
        use = "not yet"
    else:
        use = "no guarantee" if best is None else f"for {best.coverage.value or 0:.0%}"
    coverage = {
        one.guarantee.share: f"{one.coverage.value or 0.0:.0%}" if one.guarantee.accepts_any else "none"
        for one in judge.promises
    }
    human = judge.humans.of("kappa").value if judge.humans else None
    figures = map(show_number, (judge.after.of("kappa").value, human))
    return (
        judge.name,
        use,
        *figures,
        *[coverage.get(one, "none") for one in SHOWN_SHARES],
        show_usd(None if judge.cost_usd is None else judge.cost_usd * PRICED_ITEMS),
    )


def _find_best(judge: JudgeReport) -> Promise | None:
    """Find the highest promise under which it decides half of the items, otherwise the one under which it decides most."""
    kept = [one for one in judge.promises if one.guarantee.accepts_any and (one.coverage.value or 0) >= MIN_COVERAGE]
    wide = [one for one in kept if (one.coverage.value or 0) >= MIN_TO_DECIDE]
    if wide:
        return max(wide, key=lambda one: one.guarantee.share)
    return max(kept, key=lambda one: one.coverage.value or 0, default=None)


def describe_use(judge: JudgeReport) -> str:
    """Describe in some sentences what the judge may be used for, on which condition, and which figures say so."""
    found = judge.fit.discrimination
    shown = "" if found is None else found.explain()
    if judge.use != "useful":
        return (
            f"{shown}. Use neither its verdicts nor rates from it; it is guaranteed nothing, and `callgrade calibrate install` "
            "refuses its fit. Without a fit, scores still pass by its own threshold: `require_calibration: true` in a rubric "
            "leaves them undecided."
        )
    if judge.why:
        return f"not yet, {judge.why}. {shown}."
    best = _find_best(judge)
    fit = _describe_fit(judge)
    if best is None:
        low = min((one.guarantee.share for one in judge.promises), default=0.8)
        right = judge.after.of("accuracy").value
        agreed = "" if right is None else f" (of the held-out ones {right:.0%} agreed)"
        return (
            f"{shown}. No threshold promises, with 95 % confidence, that {low:.0%} of its verdicts agree{agreed}: have rates "
            f"corrected by labels, and a person look before you act on a single verdict. {_advise(judge, low)} {fit}"
        )
    used, terms = best.coverage.value or 0.0, best.guarantee
    passes = "no pass" if terms.passes_from is None else f"passes from raw {terms.passes_from:.2f}"
    fails = "no failure" if terms.fails_to is None else f"failures to raw {terms.fails_to:.2f}"
    return (
        f"{shown}; use its verdict on {used:.0%} of items ({passes}, {fails}) if {terms.share:.0%} must agree with the labels "
        f"({show_number(best.agreement.value)} did), and leave {1 - used:.0%} to people. {fit}"
    )


def _advise(judge: JudgeReport, share: float) -> str:
    """Say how many labels could bring a promise of this share, if the judge stays as often right on each side as it is."""
    table = judge.after.confusion
    sides = {"passes": (table.tp, table.tp + table.fp), "failures": (table.tn, table.tn + table.fn)}
    rates = {name: right / size for name, (right, size) in sides.items() if size}
    if len(rates) == len(sides) and min(rates.values()) > share:
        sides, rates = {"verdicts": (table.tp + table.tn, table.n)}, {"verdicts": (table.tp + table.tn) / table.n}
    counts = {name: count_verdicts(rate, share, GUARANTEE_ERROR * TESTED_ERROR_PART) for name, rate in rates.items()}
    needed = {name: ceil(count * table.n / sides[name][1]) for name, count in counts.items() if count}
    if not needed:
        agreed = " and ".join([f"{rate:.0%} of its {name}" for name, rate in rates.items()])
        return f"{agreed} agree, so more labels bring no promise of {share:.0%}: improve the judge."
    name = min(needed, key=lambda one: needed[one])
    of = "" if name == "verdicts" else f" for its {name}, {sides[name][1] / table.n:.0%} of items"
    return f"If it stays as it is, some {max(needed[name], ceil(table.n) + 1)} labels in all would promise {share:.0%}{of}."


def _describe_fit(judge: JudgeReport) -> str:
    terms = judge.fit.guarantee
    if terms is None:
        low, high = judge.review_band.band if judge.review_band else (None, None)
        band = "" if low is None or high is None else f" and leaves values from {low:.2f} to {high:.2f} to a human"
        start = f"Its fit promises nothing: it passes from {judge.fit.threshold:.2f}"
        return f"{start}{band} (--guarantee makes one that promises)."
    if terms.accepts_any:
        return f"Its fit promises {terms.share:.0%}."
    return (
        f"Its fit was to promise {terms.share:.0%}: no threshold does, so once installed it leaves every verdict to "
        f"people. {_advise(judge, terms.share)} Or leave --guarantee out."
    )
