"""Missing optional dependencies: which extra of callgrade installs the module that a command needs."""

from __future__ import annotations

import re

from service.errors import InputError, SettingsError


def explain_missing(error: ModuleNotFoundError) -> InputError | None:
    """Build an error that names the extra which installs the module; None if no extra does, which is a fault of ours."""
    module = (error.name or "").partition(".")[0]
    extra = _read_extras().get(module)
    if extra is None:
        return None
    return SettingsError.at("", f"this needs {module}, which is not installed: pip install 'callgrade[{extra}]'")


def _read_extras() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415 (importing it takes an eighth of `--help`)

    try:
        requirements = requires("callgrade") or []
    except PackageNotFoundError:
        return {}
    matches = [re.match(r"""([\w.-]+).*\bextra == ['"](\w+)['"]""", one) for one in requirements]
    return {match[1].lower().replace("-", "_"): match[2] for match in matches if match}
