"""Fit judges to human labels, and install the fits."""

from service.cli.app import build_folder

COMMANDS = {
    "import": "labels:import_label_files",
    "judge": "labels:judge_items",
    "run": "fits:fit_judges",
    "install": "fits:install_fits",
    "fits": "fits:list_fits",
    "check": "judges:check_judges",
    "certify": "fits:certify_fits",
    "compare": "judges:compare_judges",
}
"""The chapter and function of each, in the order in which they are used."""

commands = build_folder("calibrate", {name: f"{__name__}.{place}" for name, place in COMMANDS.items()}, __doc__ or "")
