"""What calls do to the world, held against what was asked for and what is told of it."""
