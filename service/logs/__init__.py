"""What a process says of itself: lines of JSON, and no secret in any."""
