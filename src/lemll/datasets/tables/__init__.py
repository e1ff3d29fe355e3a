"""Tables of one row per example: CSV and Parquet."""
