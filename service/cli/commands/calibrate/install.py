"""`callgrade calibrate install`: fits are put where they decide, and what they leave open is said."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.command import command
from service.cli.context import read_settings
from service.cli.exits import ExitCode
from service.cli.rendering.console import number, plural, say, warn
from service.errors import SettingsError

if TYPE_CHECKING:
    from service.core.judging.fits import Fit
    from service.settings import Settings


@command(4)
def calibrate_install(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, or its report.json.")],
) -> int:
    """Put the fits of a run into CALLGRADE_HOME/fits, where they decide what judges said.

    Warns of each judge and model whose verdicts stay open because these fits are not theirs.
    """
    return install_fits(run)


def install_fits(run: Path) -> ExitCode:
    """Copy the fits of a run into CALLGRADE_HOME/fits, each in place of an earlier one for the same judge and criterion.

    SettingsError for a file that is no fit; a usage error where there is none, or where the folder cannot be written.
    """
    from service.fits.files import describe_state
    from service.wiring import build_engine

    fits = _find_fits(run)
    settings = read_settings()
    folder = settings.home / "fits"
    _write(fits, folder)
    _note(settings)
    engine = build_engine(settings)
    for fit in fits:
        say(_describe(fit, describe_state(fit, engine.registry.judges)))
    say(f"{plural(len(fits), 'fit')} in {folder}; a service that runs reads them when it starts again")
    for sentence in engine.list_warnings():
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
    """All of a file or nothing: a service may be reading the folder."""
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


def _note(settings: Settings) -> None:
    """Writes into the audit log who did it, where there is a store: none is made for that."""
    from service.cli.actor import this_user
    from service.own_files import note_own_files
    from service.wiring import prepare_database

    if not (settings.database_url or (settings.home / "store.db").is_file()):
        return
    try:
        note_own_files(settings, prepare_database(settings), by=this_user())
    except SettingsError as error:
        warn(f"it is not in the audit log: {error}")


def _describe(fit: Fit, state: str) -> str:
    """What the fit does to a verdict, and where it cannot, why."""
    from service.fits.files import IN_USE

    band = f", from {number(fit.abstain[0])} to below {number(fit.abstain[1])} a human decides" if fit.abstain else ""
    use = f"passes from {number(fit.threshold)} on{band}" if state == IN_USE else f"decides nothing: {state}"
    return f"{fit.id} for {fit.model}: {use}"
