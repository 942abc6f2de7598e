"""Questions through the providers' own batch endpoints, which answer within a day at half the price."""
