"""Protocols of experiments: data sets, methods, splits and tuning, expanded into cells."""
