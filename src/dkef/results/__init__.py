"""The tables and files that a run leaves behind, and how they are read."""
