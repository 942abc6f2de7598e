"""A run as one HTML file, which contains everything that it shows and loads nothing."""

from __future__ import annotations

from collections.abc import Iterable

from service import __version__
from service.reporting.document import Section, build_page, render_sections
from service.web.rendering import read_static, render_template
from service.web.trace.run import RunView


def render_run_file(view: RunView, numbers: Iterable[Section] = ()) -> str:
    """Render the file. `numbers` is the summary of the run as a document."""
    from markupsafe import Markup  # noqa: PLC0415 (it comes with jinja2, and is loaded with it)

    body = render_template(
        "trace/run.html",
        view=view,
        numbers=Markup(render_sections(numbers)),  # noqa: S704 (render_sections escapes)
        version=__version__,
    )
    style = "\n".join([_read(name) for name in ("base.css", "style.css", "trace.css")])
    return build_page(f"{view.title} · callgrade", body, style=style, script=_read("trace.js"))


def _read(name: str) -> str:
    file = read_static(name)
    if file is None:
        raise FileNotFoundError(name)
    return file[0].decode()
