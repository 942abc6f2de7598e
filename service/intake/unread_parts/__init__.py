"""What readers do not read: judged by what it could be, in one way for all formats."""
