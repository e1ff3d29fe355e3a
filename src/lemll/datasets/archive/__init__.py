"""The NPZ layout: one compressed archive of plain arrays, without pickle."""
