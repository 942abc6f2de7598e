"""Answers that tell tool results truly, the same with one fact changed, and the same in other words."""
