"""Render templates to text. This knows no requests, so that a page can be made without a service."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from service.web.wording import FILTERS

if TYPE_CHECKING:
    from jinja2 import Environment

HERE = Path(__file__).parent
STATIC = HERE / "static"

MEDIA = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
"""The media types of the files that are served, by suffix."""


@cache
def build_environment() -> Environment:
    """Build the environment of the templates: everything is escaped, and an undefined name is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (load it only for the first page)

    environment = Environment(
        loader=FileSystemLoader([HERE / "templates", HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters.update(FILTERS)
    environment.filters["static"] = find_static_url
    return environment


def render_template(name: str, **values: object) -> str:
    """Render a template, by its path below `service/web/templates` or `service/web`."""
    return build_environment().get_template(name).render(values)


def find_static_url(name: str) -> str:
    """Return the URL of a static file; KeyError if there is none of that name."""
    return list_static()[name].url


class StaticFile(NamedTuple):
    """A static file of ours. Its URL changes whenever it does, so browsers may cache it for ever."""

    body: bytes
    media: str
    url: str


@cache
def list_static() -> dict[str, StaticFile]:
    """Read all static files, by name: a request for another name caches nothing, and touches no file."""
    bodies = {one: one.read_bytes() for one in STATIC.iterdir() if one.suffix in MEDIA}
    return {
        file.name: StaticFile(body, MEDIA[file.suffix], f"/static/{file.name}?v={sha256(body).hexdigest()[:12]}")
        for file, body in bodies.items()
    }
