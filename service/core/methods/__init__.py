"""Published methods as their own code has them, mistakes included: a check with its `kind`, and the number it computes."""
