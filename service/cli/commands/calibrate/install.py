"""Install the fits of a run."""

from __future__ import annotations

import typer

from service.calibration.results import render_report_json
from service.cli.calibrating import Run, find_folder
from service.cli.commands.keys import find_user
from service.cli.exits import ExitCode
from service.cli.options import read_settings, writing
from service.cli.screen import pluralize, say, warn
from service.core.judging.fit_warnings import IN_USE
from service.core.judging.fits.fit import Fit
from service.errors import SettingsError
from service.fits.files import build_file_name, describe_state, read_fits, refuse_useless
from service.fits.own_files import note_own_files
from service.reporting.numbers import render_number
from service.wiring import build_engine, prepare_database


def main(run: Run) -> int:
    """Install the fits of a run in CALLGRADE_HOME/fits, so that they turn judges' answers into verdicts.

    Refuses the fit of a judge that is not useful: one that the held-out labels do not show to be better than chance. Warns about
    each judge and model whose verdicts stay open because no fit is theirs.
    """
    source = find_folder(run) / "fits"
    found = read_fits([source])
    if not found:
        raise typer.BadParameter(f"{source} holds no fit; `callgrade calibrate run` writes them", param_hint="RUN")
    fits, refused = refuse_useless(found)
    settings = read_settings()
    folder = settings.home / "fits"
    with writing(folder, "CALLGRADE_HOME"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for fit in fits:  # written whole or not at all, because a service may be reading the folder
            draft = folder / f"{build_file_name(fit)}.new"
            draft.write_bytes(render_report_json(fit))
            draft.replace(folder / build_file_name(fit))
    if settings.database_url or (settings.home / "store.db").is_file():  # no store is created for it
        try:
            note_own_files(settings, prepare_database(settings), by=find_user())
        except SettingsError as error:
            warn(f"the installation is not in the audit log: {error}")
    engine = build_engine(settings)
    for fit in fits:
        state = describe_state(fit, engine.registry.judges)
        say(f"{fit.id} for {fit.model}: {_describe_use(fit) if state == IN_USE else f'decides nothing: {state}'}")
    say(f"{pluralize(len(fits), 'fit')} in {folder}; restart a running service to use them")
    for sentence in (*refused, *engine.list_warnings()):
        warn(sentence)
    return ExitCode.PASSED


def _describe_use(fit: Fit) -> str:
    """Describe what a fit does with the judge's answers: raw values with a guarantee, else calibrated ones."""
    terms = fit.guarantee
    if terms is None:
        low, high = fit.review_band or (0.0, 0.0)
        band = f", from {render_number(low)} to below {render_number(high)} a human decides" if fit.review_band else ""
        return f"passes from {render_number(fit.threshold)}{band}"
    if not terms.accepts_any:
        return f"accepts no verdict, because no threshold promises {terms.share:.0%}: a human decides everything"
    passes = "" if terms.passes_from is None else f"passes from raw {render_number(terms.passes_from)}, "
    fails = "" if terms.fails_to is None else f"fails to raw {render_number(terms.fails_to)}, "
    return f"{passes}{fails}so that {terms.share:.0%} agree; a human decides the rest"
