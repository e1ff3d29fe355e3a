"""ARFF, in the dialects of Mulan and MEKA: header, rows, and a fast path for plain numbers."""
