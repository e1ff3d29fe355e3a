"""The studies: the experiments of the paper, and our own."""
