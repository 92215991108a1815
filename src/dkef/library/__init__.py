"""dkef in a notebook: fit a density to one array, ask it in the units of that array, compare several."""
