"""Calibration: labelled sets, splits by group, maps from a judge's raw value to what humans say, and the report on them.

Nothing here asks a model.
"""
