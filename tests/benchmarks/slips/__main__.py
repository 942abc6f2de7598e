"""How well code finds facts that no result bears out: `python -m tests.benchmarks.slips --half dev [--show CLASS]`.

Every text is scored through `callgrade.score` by the gate `narration` alone: what it finds is what `result_groundedness` of
`four_step` finds, which with judges off is only contradictions. A mutant counts by the findings that its true answer has not.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import callgrade
from tests.benchmarks.slips.cases import HALVES, Case, build_cases

RUBRIC = {
    "id": "narration",
    "version": 1,
    "title": "Narration",
    "description": "What code finds in an answer.",
    "criteria": [{"id": "result_groundedness", "stage": "integrate", "check": {"kind": "narration"}}],
}
LEVELS = ("contradicted", "suspected", "unsupported")
_LEVEL_OF = {"suspected_contradiction": "suspected", "unsupported_claim": "unsupported"}


@dataclass(frozen=True)
class Found:
    """A finding: its level, what it says, and of that what is about the result and not about the words of the text."""

    level: str
    message: str
    about: str


def main() -> None:
    """Prints the tables of a half, or examples of a class (`true` and `paraphrase` are classes here)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=HALVES, required=True)
    parser.add_argument("--show", metavar="CLASS", help="examples of this class with what was found, instead of tables")
    parser.add_argument("--level", choices=(*LEVELS, "missed"), help="with --show: only these")
    parser.add_argument("--limit", type=int, default=20)
    args = parser.parse_args()
    cases = [case for case in build_cases(args.half) if args.show in (None, name_class(case))]
    start = time.process_time()
    scored = list(score_all(cases))
    if args.show:
        chosen = [each for each in scored if args.level in (None, find_level(each[1]))]
        _show(random.Random(0).sample(chosen, min(args.limit, len(chosen))))
    else:
        print(f"half {args.half}: {len(cases)} texts in {time.process_time() - start:.0f} s of processor time\n")
        _print_tables(scored)


def name_class(case: Case) -> str:
    """The class of slip; `true` and `paraphrase` where there is none."""
    return case.slip or ("true" if case.is_true_answer else "paraphrase")


def score_all(cases: Iterable[Case]) -> Iterable[tuple[Case, list[Found]]]:
    """Each case with what is found there; for a mutant, without what is found in its true answer."""
    true, known = "", list[Found]()
    for case in cases:
        if case.slip and case.true != true:
            true, known = case.true, find(case, case.true)
        found = find(case, case.text)
        yield case, subtract(found, known) if case.slip else found


def subtract(found: list[Found], known: list[Found]) -> list[Found]:
    """What is not known, by what it is about."""
    left = Counter((each.level, each.about) for each in known)
    new: list[Found] = []
    for each in found:
        key = each.level, each.about
        if left[key]:
            left[key] -= 1
        else:
            new.append(each)
    return new


def find(case: Case, text: str) -> list[Found]:
    """Every finding on the answer."""
    report = callgrade.score({"trace": case.build_trace(text), "rubric": RUBRIC, "judges": "off"})
    outcomes = [each.outcome for criterion in report.criteria for each in criterion.outcomes]
    return [
        Found(_LEVEL_OF.get(each.code, "contradicted"), f"{each.code}: {each.message}", _cut(each.code, each.message))
        for outcome in outcomes
        for each in outcome.findings
        if each.code != "unread_result"
    ]


def _cut(code: str, message: str) -> str:
    return code if code == "unsupported_claim" else f"{code} {message.rpartition(', ')[2]}"


def find_level(found: list[Found]) -> str:
    """The strongest level among findings."""
    levels = {each.level for each in found}
    return next((level for level in LEVELS if level in levels), "missed")


def _print_tables(scored: list[tuple[Case, list[Found]]]) -> None:
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


def _show(scored: list[tuple[Case, list[Found]]]) -> None:
    for case, found in scored:
        print(f"{case.id}  {find_level(found)}\n  {case.mark_changes()}")
        for each in found:
            print(f"    {each.level}: {each.message}")


if __name__ == "__main__":
    main()
