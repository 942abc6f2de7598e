"""Checks of what answers claim against what tools returned."""
