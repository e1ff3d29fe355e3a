"""Run cells in this process, in worker processes, or on a Dask cluster."""
