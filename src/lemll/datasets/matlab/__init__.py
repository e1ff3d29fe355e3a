"""MATLAB files: version 5 by our own reader, 7.3 (HDF5) in a child process."""
