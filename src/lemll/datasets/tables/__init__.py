"""Tables with one row per example: CSV and Parquet."""
