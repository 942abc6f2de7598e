"""Commands that `callgrade batch` and `callgrade calibrate` share: they act on the jobs of a running service."""
