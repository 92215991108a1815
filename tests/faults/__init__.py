"""Runs that are disturbed and resumed; `make test-faults`. Not collected by pytest: it takes half an hour and root."""
