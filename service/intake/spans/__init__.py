"""OpenTelemetry spans: export forms, attribute conventions, and the dialogue that all spans together record."""
