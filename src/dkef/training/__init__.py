"""One resumable training loop: parameter layout, Adam, early stopping, progress and its checkpoint."""
