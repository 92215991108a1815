"""The compiled program that evaluates a kernel exponential family millions of times a second."""
