"""From YAML to typed settings, the plan of an experiment, and the code that stands behind each job."""
