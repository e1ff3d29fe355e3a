"""Where results live: one sealed record per cell, with its arrays beside it."""
