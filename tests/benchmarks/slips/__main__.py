"""How well code finds facts that no result bears out: `python -m tests.benchmarks.slips --half dev [--show CLASS]`.

Every text is scored through `callgrade.score` by the gate `narration` alone: what it finds is what `grounded` of `four_step`
finds, which with judges off tells only of contradictions. A mutant counts by the findings that its true answer has not.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterable

import callgrade
from tests.benchmarks.slips.cases import HALVES, Case, build_cases

RUBRIC = {
    "id": "narration",
    "version": 1,
    "title": "Narration",
    "description": "What code finds in an answer.",
    "criteria": [{"id": "grounded", "stage": "integrate", "check": {"kind": "narration"}}],
}
LEVELS = ("contradicted", "suspected", "unsupported")
_LEVEL_OF = {"suspected_contradiction": "suspected", "unsupported_claim": "unsupported"}
Findings = Counter[tuple[str, str]]


def main() -> None:
    """Prints the tables of a half, or examples of a class (`true` and `paraphrase` are classes here)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=HALVES, required=True)
    parser.add_argument("--show", metavar="CLASS", help="examples of this class with what was found, instead of tables")
    parser.add_argument("--level", choices=(*LEVELS, "missed"), help="with --show: only these")
    parser.add_argument("--limit", type=int, default=20)
    args = parser.parse_args()
    cases = [case for case in build_cases(args.half) if args.show in (None, name_class(case))]
    start = time.perf_counter()
    scored = list(score_all(cases))
    if args.show:
        chosen = [each for each in scored if args.level in (None, find_level(each[1]))]
        _show(random.Random(0).sample(chosen, min(args.limit, len(chosen))))
    else:
        print(f"half {args.half}: {len(cases)} texts in {time.perf_counter() - start:.0f} s\n")
        _print_tables(scored)


def name_class(case: Case) -> str:
    """The class of slip; `true` and `paraphrase` where there is none."""
    return case.slip or ("true" if case.is_true_answer else "paraphrase")


def score_all(cases: Iterable[Case]) -> Iterable[tuple[Case, Findings]]:
    """Each case with what is found there; for a mutant, without what is found in its true answer."""
    true, known = "", Counter[tuple[str, str]]()
    for case in cases:
        if case.slip and case.true != true:
            true, known = case.true, find(case, case.true)
        found = find(case, case.text)
        yield case, found - known if case.slip else found


def find(case: Case, text: str) -> Findings:
    """Level and message of every finding on the answer."""
    report = callgrade.score({"trace": case.build_trace(text), "rubric": RUBRIC, "judges": "off"})
    outcomes = [each.outcome for criterion in report.criteria for each in criterion.outcomes]
    return Counter(
        (_LEVEL_OF.get(finding.code, "contradicted"), f"{finding.code}: {finding.message}")
        for outcome in outcomes
        for finding in outcome.findings
        if finding.code != "unread_result"
    )


def find_level(found: Findings) -> str:
    """The strongest level among findings."""
    levels = {level for level, _ in found}
    return next((level for level in LEVELS if level in levels), "missed")


def _print_tables(scored: list[tuple[Case, Findings]]) -> None:
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for case, found in scored:
        for name in (name_class(case), *(["all mutants"] if case.slip else [])):
            rows[name][find_level(found)] += 1
    clean = [(name, rows.pop(name)) for name in ("true", "paraphrase")]
    total = rows.pop("all mutants")
    _print_table("mutants", [*sorted(rows.items()), ("all mutants", total)], "missed")
    _print_table("no slip", clean, "nothing")


def _print_table(title: str, rows: list[tuple[str, Counter[str]]], last: str) -> None:
    print(f"{title:<12}" + "".join(f"{head:>15}" for head in (*LEVELS, last, "n")))
    for name, row in rows:
        n = row.total()
        cells = [f"{row[level]:>8} {row[level] / n:>5.1%}" for level in (*LEVELS, "missed")]
        print(f"{name:<12}" + "".join(f"{cell:>15}" for cell in (*cells, n)))
    print()


def _show(scored: list[tuple[Case, Findings]]) -> None:
    for case, found in scored:
        print(f"{case.id}  {find_level(found)}\n  {case.mark_changes()}")
        for level, message in found:
            print(f"    {level}: {message}")


if __name__ == "__main__":
    main()
