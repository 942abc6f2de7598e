"""The pages of judges: what each is asked, its fits, how it compares with people, and installing a fit."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from pydantic import JsonValue
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from service.api.access import find_caller
from service.api.page_route import PageRoute
from service.api.parts import ApiParts
from service.api.routes.fits import REQUEST
from service.api.routes.overview import JudgeQuery
from service.core.judging.fits.fit import Fit
from service.core.judging.judges import Judge
from service.core.models.validation import validate
from service.errors import InputError, Problem
from service.labelling.agreement import list_criteria
from service.reading.strict_json import parse_strictly
from service.web.page import NavLink, PageSet, page, read_form, redirect, render
from service.wiring import build_limits


class JudgePages:
    """The handlers over the known judges, the fits in place and the labels of one store."""

    def __init__(self, parts: ApiParts) -> None:
        self._engine = parts.engine
        self._labels = parts.labels
        self._overview = parts.overview
        self._fits = parts.fits
        self._limits = build_limits(parts.settings)

    async def list_judges(self, request: Request) -> Response:
        """List the judges, each with its fits and its agreement with people."""
        states = (await self._fits.list_fits(request)).data
        agreements = (await self._overview.list_judges(request, JudgeQuery())).data
        criteria = list_criteria(self._engine)
        judges = [
            (
                judge,
                sorted(criteria.get(name, ())),
                [one for one in states if one.judge == name],
                [one for one in agreements if one.judge == name],
            )
            for name, judge in sorted(self._engine.registry.judges.items())
        ]
        return render(request, "judges.html", twin="/v1/judges", judges=judges, warnings=self._engine.list_warnings())

    async def show_judge(self, request: Request) -> Response:
        """Show one judge in full."""
        return await self._render(request, self._find_judge(request))

    async def install_fit(self, request: Request) -> Response:
        """Install the fits of a calibration, or one that was pasted. For admins."""
        judge, form = self._find_judge(request), read_form(request)
        try:
            install_request = validate(
                REQUEST, self._read_install_form(form.get("calibration", ""), form.get("fit", ""))
            )
            _check_judge(install_request.fits, judge)
            await self._fits.install(request, install_request.calibration, install_request.fits)
        except InputError as error:
            return await self._render(request, judge, refusal=str(error.problems[0]), status=422)
        return redirect(f"/judges/{judge.id}")

    async def roll_back_fit(self, request: Request) -> Response:
        """Take a fit out of its place. For admins."""
        judge = self._find_judge(request)
        await self._fits.roll_back_fit(request, read_form(request).get("fit", ""))
        return redirect(f"/judges/{judge.id}")

    async def _render(
        self, request: Request, judge: Judge, *, refusal: str | None = None, status: int = 200
    ) -> Response:
        desk, tenant = self._labels.find_store(), find_caller(request).tenant
        criteria = sorted(list_criteria(self._engine).get(judge.id, ()))
        fits = [one for one in (await self._fits.list_fits(request)).data if one.judge == judge.id]
        fits_by_id = {fit.id: fit for fit in self._engine.fits}
        agreements = (await self._overview.list_judges(request, JudgeQuery(judge=judge.id))).data
        pages = [
            await self._labels.run(
                request, lambda one=one: desk.list_disagreements(tenant, criterion=one, between="judge", limit=50)
            )
            for one in criteria
        ]
        summary = await self._labels.run(
            request, lambda: [desk.summarize(tenant, one.criterion, "").data[0] for one in agreements]
        )
        return render(
            request,
            "judge.html",
            status=status,
            twin=f"/v1/judges?judge={judge.id}",
            judge=judge,
            criteria=criteria,
            fits=[(one, fits_by_id[one.id]) for one in fits if one.id in fits_by_id],
            agreements=agreements,
            humans={one.progress.criterion: one for one in summary},
            disputed=[case for one in pages for case in one.data],
            may_label=find_caller(request).may("label"),
            refusal=refusal,
            places={case.item: build_item_path(case.item) for one in pages for case in one.data},
        )

    def _find_judge(self, request: Request) -> Judge:
        judge = self._engine.registry.judges.get(request.path_params["name"])
        if judge is None:
            raise HTTPException(404, "there is no judge with that name")
        return judge

    def _read_install_form(self, calibration: str, text: str) -> JsonValue:
        if calibration.strip():
            return {"calibration": calibration.strip()}
        return {"fits": [parse_strictly(text.encode(), self._limits)]} if text.strip() else {}


def _check_judge(fits: Sequence[Fit], judge: Judge) -> None:
    """Raise InputError for a fit of another judge than the page's."""
    others = [(n, fit.judge) for n, fit in enumerate(fits) if fit.judge != judge.id]
    if others:
        raise InputError([Problem(f"/fits/{n}/judge", f"{name!r} is another judge") for n, name in others])


def build_item_path(item: str) -> str | None:
    """Build the path of an item's page; None if it has none."""
    batch, slash, position = item.partition("/")
    return f"/batches/{quote(batch)}/traces/{quote(position)}" if slash and batch.startswith("batch_") else None


def build_judge_pages(parts: ApiParts) -> Sequence[PageRoute]:
    """Build the pages, and the routes of their forms."""
    pages = JudgePages(parts)
    return [
        page("/judges", pages.list_judges, needs="calibrate"),
        page("/judges/{name}", pages.show_judge, needs="calibrate"),
        page("/judges/{name}/install", pages.install_fit, needs="admin", method="POST", carries_body=True),
        page("/judges/{name}/rollback", pages.roll_back_fit, needs="admin", method="POST"),
    ]


PAGES = PageSet(build_judge_pages, NavLink(40, "Judges", "/judges", "calibrate"))
