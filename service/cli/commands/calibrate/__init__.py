"""Fit judges to human labels, and install the fits."""

import sys

from service.cli.app import build_folder

FIRST = ("import", "judge", "run", "install", "fits", "check", "certify", "compare")
"""In the order in which they are used."""

commands = build_folder("calibrate", sys.modules[__name__], __doc__ or "", FIRST)
