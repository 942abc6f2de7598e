"""What `callgrade batch` and `callgrade calibrate` share: commands about the jobs of a running service."""
