"""What is not installed: which extra of callgrade brings a module that a command needs."""

from __future__ import annotations

import re

from service.errors import InputError, SettingsError


def explain_missing(error: ModuleNotFoundError) -> InputError | None:
    """The error for a person, where the module comes with an extra; None where it is one that should be there."""
    module = (error.name or "").partition(".")[0]
    extra = _read_extras().get(module)
    if extra is None:
        return None
    return SettingsError.at("", f"this needs {module}, which is not installed: pip install 'callgrade[{extra}]'")


def _read_extras() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, requires  # noqa: PLC0415 (an eighth of the time of `--help`)

    try:
        listed = requires("callgrade") or []
    except PackageNotFoundError:
        return {}
    found = [re.match(r"""([\w.-]+).*\bextra == ['"](\w+)['"]""", one) for one in listed]
    return {one[1].lower().replace("-", "_"): one[2] for one in found if one}
