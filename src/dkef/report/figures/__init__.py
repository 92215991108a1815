"""The paper's figures: one module a figure, one look for every model, and a catalogue of what each needs."""
