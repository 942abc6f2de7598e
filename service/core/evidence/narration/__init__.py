"""What answers claim, held against what tools returned."""
