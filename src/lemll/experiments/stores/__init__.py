"""The store of results: one record with a checksum per cell, and a file with its arrays."""
