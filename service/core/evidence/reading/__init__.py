"""What text says that can be compared: words, numbers, quantities, units, dates."""
