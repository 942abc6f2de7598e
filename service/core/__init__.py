"""The pure core: no clock, no randomness, no environment, no files, no event loop, no logging."""
