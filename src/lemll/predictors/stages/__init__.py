"""Shared parts of the two-stage classifiers, which enhance labels and then fit a regression."""
