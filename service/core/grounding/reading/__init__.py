"""Read the typed values of a text: numbers, money, measures, days, times, codes."""
