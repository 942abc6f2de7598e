"""Read comparable values from text: words, numbers, quantities, units, dates."""
