"""What tools returned: the structure in it, and whether it says that the call failed."""
