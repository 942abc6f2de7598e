"""Write traces in formats that callgrade also reads."""
