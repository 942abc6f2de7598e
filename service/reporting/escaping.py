"""Escape untrusted text for the place it is shown in."""

from __future__ import annotations

import re

_MEANINGFUL = re.compile(r"[\\`*_{}\[\]<>#|~&!$]")


def escape_unprintable(text: str) -> str:
    r"""Put the text on one line and make it harmless to a terminal: unprintable characters become escapes.

    >>> escape_unprintable("a\nb \x1b[31m")
    'a\\nb \\x1b[31m'
    """
    if text.isprintable():
        return text
    return "".join([one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text])


def escape_markdown(text: str) -> str:
    r"""Put the text on one line and escape it so that Markdown shows it literally.

    >>> escape_markdown("a|b\n<i>_c_</i>")
    'a\\|b \\<i\\>\\_c\\_\\</i\\>'
    """
    return _MEANINGFUL.sub(lambda found: "\\" + found[0], escape_unprintable(" ".join(text.split())))
