"""Read what tools returned: find the structure in a result, and whether it reports that the call failed."""
