"""Kernels, and the sums over pairs of samples that metrics, tests and function classes share."""
