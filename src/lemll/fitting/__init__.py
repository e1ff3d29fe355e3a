"""Shared parts of LEMLL, MSVR and the enhancers: fits of Eq. (9), kernels and normalisation."""
