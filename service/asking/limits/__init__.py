"""How many requests a provider gets, when, and whose turn it is."""
