"""How a value may be said otherwise, what comes of several, and what a wrong one slipped from."""
