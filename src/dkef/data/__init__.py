"""Data: where rows come from, how they are prepared, and the splits that every model sees."""
