"""What every other package stands on: arrays, errors, whole files, tables, random streams, provenance."""
