"""A run as one HTML file, which contains everything that it shows and loads nothing."""

from __future__ import annotations

from collections.abc import Iterable

from service import __version__
from service.reporting.document import Section, build_page, render_sections
from service.web.rendering import list_static, render_template
from service.web.trace.run import RunView

FILES = (("base.css", "style.css", "trace.css"), ("trace.js",))
"""The stylesheets and scripts that it contains."""


def render_run_file(view: RunView, numbers: Iterable[Section] = ()) -> str:
    """Render the file. `numbers` is the summary of the run as a document."""
    from markupsafe import Markup  # noqa: PLC0415 (it comes with jinja2, and is loaded with it)

    body = render_template(
        "trace/run.html",
        view=view,
        numbers=Markup(render_sections(numbers)),  # noqa: S704 (render_sections escapes)
        version=__version__,
    )
    style, script = ["\n".join([list_static()[name].body.decode() for name in names]) for names in FILES]
    return build_page(f"{view.title} · callgrade", body, style=style, script=script)
