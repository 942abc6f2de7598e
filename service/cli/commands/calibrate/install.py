"""`callgrade calibrate install`: install the fits of a run, and warn about what they leave open."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import pluralize, say, warn
from service.errors import SettingsError
from service.reporting.numbers import render_number

if TYPE_CHECKING:
    from service.core.judging.fits import Fit
    from service.settings import Settings


@command(4)
def calibrate_install(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The report.json of a run, or its folder.")],
) -> int:
    """Install the fits of a run in CALLGRADE_HOME/fits, so that they turn judges' answers into verdicts.

    Refuses the fit of a useless judge: one whose AUROC has no 95 % interval above 0.5. Warns about each judge and model whose
    verdicts stay open because no fit is theirs.
    """
    return install_fits(run)


def install_fits(run: Path) -> ExitCode:
    """Copy the fits of a run into CALLGRADE_HOME/fits; each replaces an earlier one for the same judge and criterion.

    SettingsError for a file that is not a fit, InputError where every fit is refused; a usage error if there is no fit or the
    folder cannot be written.
    """
    from service.fits.files import describe_state, refuse_useless
    from service.wiring import build_engine

    fits, refused = refuse_useless(_find_fits(run))
    settings = read_settings()
    folder = settings.home / "fits"
    _write(fits, folder)
    _record_audit(settings)
    engine = build_engine(settings)
    for fit in fits:
        say(_describe(fit, describe_state(fit, engine.registry.judges)))
    say(f"{pluralize(len(fits), 'fit')} in {folder}; restart a running service to use them")
    for sentence in (*refused, *engine.list_warnings()):
        warn(sentence)
    return ExitCode.PASSED


def _find_fits(run: Path) -> tuple[Fit, ...]:
    from service.fits.files import read_fits

    folder = run if run.is_dir() else run.parent
    fits = read_fits([folder / "fits"])
    if not fits:
        raise typer.BadParameter(
            f"{folder / 'fits'} holds no fit; `callgrade calibrate run` writes them", param_hint="RUN"
        )
    return fits


def _write(fits: Iterable[Fit], folder: Path) -> None:
    """Write each file atomically, because a service may be reading the folder."""
    from service.calibration.results import render_json
    from service.fits.files import build_file_name

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for fit in fits:
            draft = folder / f"{build_file_name(fit)}.new"
            draft.write_bytes(render_json(fit))
            draft.replace(folder / build_file_name(fit))
    except OSError as error:
        raise typer.BadParameter(f"{folder}: {error.strerror}", param_hint="CALLGRADE_HOME") from None


def _record_audit(settings: Settings) -> None:
    """Record the installation in the audit log if a store exists; do not create one for it."""
    from service.cli.commands.keys import find_user
    from service.own_files import note_own_files
    from service.wiring import prepare_database

    if not (settings.database_url or (settings.home / "store.db").is_file()):
        return
    try:
        note_own_files(settings, prepare_database(settings), by=find_user())
    except SettingsError as error:
        warn(f"the installation is not in the audit log: {error}")


def _describe(fit: Fit, state: str) -> str:
    """Describe what the fit does to a verdict, or why it does nothing."""
    from service.fits.files import IN_USE

    band = (
        f", from {render_number(fit.review_band[0])} to below {render_number(fit.review_band[1])} a human decides"
        if fit.review_band
        else ""
    )
    use = f"passes from {render_number(fit.threshold)}{band}" if state == IN_USE else f"decides nothing: {state}"
    return f"{fit.id} for {fit.model}: {use}"
