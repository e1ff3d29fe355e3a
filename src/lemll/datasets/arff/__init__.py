"""Read and write ARFF in the dialects of Mulan and MEKA, with a fast path for plain numbers."""
