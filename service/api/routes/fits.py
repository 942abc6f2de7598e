"""Fits over HTTP: list the installed ones and how they have held; install and roll back fits, for admins."""

from __future__ import annotations

from pydantic import Field, TypeAdapter, model_validator
from starlette.requests import Request

from service.api.access import find_actor, find_tenant
from service.api.body import read_json
from service.api.contract import BODY_PROBLEMS, build_router, describe_json
from service.api.store_access import StoreAccess
from service.core.judging.fits.fit import Fit
from service.core.models.kinds import FrozenModel, Several
from service.errors import InputError
from service.fits.manager import FitInstallation, FitManager, FitStates, read_fit_files
from service.reading.strict_json import Limits
from service.store.jobs.calibrations import Calibrations

EXAMPLE = {"calibration": "calibration_019aa5b3c4d000112233445566778899"}


class FitInstallRequest(FrozenModel):
    """Which fits to install: those of a calibration, or those in the request."""

    calibration: str | None = Field(default=None, pattern="^calibration_[0-9a-f]{32}$")
    """The id of a completed calibration, to install all its fits"""
    fits: Several[Fit] = ()
    """Fits as the files of a run contain them"""

    @model_validator(mode="after")
    def _require_one(self) -> FitInstallRequest:
        if (self.calibration is None) == (not self.fits):
            raise ValueError("expected either `calibration` or `fits`")
        return self


REQUEST: TypeAdapter[FitInstallRequest] = TypeAdapter(FitInstallRequest)


class FitRoutes(StoreAccess[FitManager]):
    """The handlers over installed fits."""

    def __init__(self, manager: FitManager | None, calibrations: Calibrations | None, limits: Limits) -> None:
        super().__init__(manager, "fits are installed in", threads=2)
        self._calibrations = calibrations
        self._limits = limits
        self.router = router = build_router("fits", 404, 409, 507)
        body = describe_json(FitInstallRequest, EXAMPLE)
        router.get("/v1/fits")(self.list_fits)
        router.post("/v1/fits", responses=BODY_PROBLEMS, openapi_extra=body)(self.install_fits)
        router.delete("/v1/fits/{fit_id:path}", status_code=204)(self.roll_back_fit)

    async def list_fits(self, request: Request) -> FitStates:
        """List the installed fits, whether each applies, and how it has held in checks since."""
        return await self.run(request, self.find_store().list_states)

    async def install_fits(self, request: Request) -> FitInstallation:
        """Install fits instead of earlier ones for the same judge and criterion; all processes use them within a second.

        The answer names judges whose verdicts stay open nevertheless. Installing the same again changes nothing.
        """
        body = await read_json(request, self._limits, REQUEST)
        return await self.install(request, body.calibration, body.fits)

    async def install(self, request: Request, calibration: str | None, fits: Several[Fit]) -> FitInstallation:
        """Install as `install_fits` does, from a request that is already read."""
        manager, by, tenant = self.find_store(), find_actor(request), find_tenant(request)
        calibrations = self._calibrations
        if calibration is not None and calibrations is not None:
            fits = tuple(read_fit_files(await self.run(request, lambda: calibrations.fits(tenant, calibration))))
            if not fits:
                raise InputError.at("/calibration", "the calibration has no fit: nothing could be fitted")
        return await self.run(request, lambda: manager.install(fits, calibration=calibration or "", by=by))

    async def roll_back_fit(self, request: Request, fit_id: str) -> None:
        """Take an installed fit out of its place: the one before it decides again, if there was one."""
        manager, by = self.find_store(), find_actor(request)
        await self.run(request, lambda: manager.roll_back(fit_id, by=by))
