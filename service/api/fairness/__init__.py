"""How much of the service each tenant has: requests, threads, bytes, connections, turns."""
