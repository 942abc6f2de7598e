"""Shared by the calibration commands: runs on disk, checks, comparisons."""
