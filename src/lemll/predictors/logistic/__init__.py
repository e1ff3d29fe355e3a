"""Shared parts of binary relevance, classifier chains and calibrated label ranking."""
