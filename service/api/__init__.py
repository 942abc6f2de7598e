"""HTTP: the application, its routes and its problem documents."""
