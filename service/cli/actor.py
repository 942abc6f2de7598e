"""The user who runs a command, for the audit log."""

from __future__ import annotations

import os
import pwd
import socket

from service.store.access.audit import Actor


def find_user() -> Actor:
    """Return the user who runs this process, and the host name."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # a container's user database may lack it
        name = str(uid)
    return Actor(f"user {name}", socket.gethostname())
