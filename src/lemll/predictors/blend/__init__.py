"""Shared parts of `TagPredictor`: members, their calibration, and the weights of the blend."""
