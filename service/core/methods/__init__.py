"""Published methods, each as a check with its `kind` and as the number that the system's own code gives, mistakes included."""
