"""Who runs a command, for the audit log."""

from __future__ import annotations

import os
import pwd
import socket

from service.store.access.audit import Actor


def this_user() -> Actor:
    """The user whose process this is, by the machine's own list, and the machine's name."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # in a container nobody may have listed it
        name = str(uid)
    return Actor(f"user {name}", socket.gethostname())
