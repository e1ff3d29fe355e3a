"""Pictures and self-contained pages."""
