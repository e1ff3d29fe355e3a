"""What is run: data sets, methods, splits and tuning, expanded into cells with an id."""
