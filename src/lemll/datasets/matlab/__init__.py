"""MATLAB files: version 5 with our own reader, version 7.3 (HDF5) in a child process."""
