"""What questions may cost, and what they did cost."""
