"""What binary relevance, classifier chains and calibrated label ranking share."""
