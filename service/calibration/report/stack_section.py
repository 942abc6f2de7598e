"""The section of a report about a stack of judges."""

from __future__ import annotations

from service.calibration.figures import Figures, Measure
from service.calibration.report.wording import show_measure
from service.calibration.results import StackReport
from service.reporting.document import Section, Table

FIGURES = {"accuracy": "accuracy", "kappa": "kappa", "auroc": "AUROC", "ece": "ECE"}


def build_stack_section(stack: StackReport) -> Section:
    """Build the table of the stack, the best single judge, and the stack by family."""
    head = ("", "items", *FIGURES.values(), "first wrong step")
    rows = [
        _build_row(f"stack of {len(stack.members)}", stack.figures, stack.first_error),
        _build_row(stack.best, stack.best_figures, stack.best_first_error),
        *[_build_row(f"stack, {one.name}", one.figures, one.first_error) for one in stack.families],
    ]
    gain = (
        "" if stack.first_error_gain is None else f", first wrong steps named: {show_measure(stack.first_error_gain)}"
    )
    text = (
        f"All {len(stack.members)} recorded judges in one logistic sum, with weights by family, beside {stack.best}, the "
        f"best single one by its own word. Gain, in pairs: kappa {show_measure(stack.kappa)}{gain}. It is not served."
    )
    return Section(f"Stack on {stack.criterion}", (Table(head, tuple(rows)),), text=(text,), level=2)


def _build_row(name: str, figures: Figures, first: Measure | None) -> tuple[str, ...]:
    shown = "-" if first is None else show_measure(first)
    return (name, str(figures.n), *[show_measure(figures.of(one)) for one in FIGURES], shown)
