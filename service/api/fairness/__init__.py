"""How tenants share a process: requests, threads, bytes, connections, turns."""
