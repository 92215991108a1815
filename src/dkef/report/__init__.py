"""What a reader sees: figures, claims, pages."""
