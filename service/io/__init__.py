"""The shell: settings, files, the engine, everything that touches the world."""
