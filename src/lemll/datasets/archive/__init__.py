"""The NPZ layout: one compressed archive of plain arrays, no pickle."""
