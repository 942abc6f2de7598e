"""Templates to text. It knows nothing of requests, so that a page can be made without a service."""

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
"""What is served, by how its name ends."""


@cache
def build_environment() -> Environment:
    """What renders templates: everything is escaped, and a name that is not given is an error."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (not loaded before the first page)

    found = Environment(
        loader=FileSystemLoader([HERE / "templates", HERE]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    found.filters.update(FILTERS)
    found.globals["static"] = find_static_url  # pyright: ignore[reportArgumentType] (any name may be a global)
    return found


def render_template(name: str, **values: object) -> str:
    """The text of a template, by its path below `service/web/templates`, or below `service/web`."""
    return build_environment().get_template(name).render(values)


def read_static(name: str) -> tuple[bytes, str] | None:
    """A file of ours with its media type; None where there is none of that name."""
    found = _list_static().get(name)
    return None if found is None else (found.body, found.media)


def find_static_url(name: str) -> str:
    """The address of a file of ours; another one whenever the file is another, so that it may be kept for ever."""
    found = _list_static().get(name)
    if found is None:
        raise FileNotFoundError(name)
    return found.url


class _StaticFile(NamedTuple):
    body: bytes
    media: str
    url: str


@cache
def _list_static() -> dict[str, _StaticFile]:
    """All there are, by name: who asks for another one leaves nothing behind, and touches no file."""
    return {one.name: _read_static_file(one, MEDIA[one.suffix]) for one in STATIC.iterdir() if one.suffix in MEDIA}


def _read_static_file(file: Path, media: str) -> _StaticFile:
    body = file.read_bytes()
    return _StaticFile(body, media, f"/static/{file.name}?v={sha256(body).hexdigest()[:12]}")
