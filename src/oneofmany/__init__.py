"""One-of-many learning: train a network to give any one of the many correct answers to an input."""

__version__ = "0.1.0.dev0"
