"""Expectations: what should have happened, as users write it. Models, matching, merging."""
