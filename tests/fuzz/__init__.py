"""Readers under broken input; `make fuzz MINUTES=20`. Not collected by pytest: what is found becomes a test there."""
