"""The typed sections of a configuration, by who reads them: the only home of their defaults and ranges."""
