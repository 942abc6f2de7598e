"""Speed, stated as ratios to a reference measured in the same run. `make bench` runs it; no test asserts a time."""
