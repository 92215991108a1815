"""Pages of the report: what each shows, as values, and a template that turns them into HTML."""
