"""What can be trained: frozen dataclasses of hyper-parameters, light to import, named by `_target_` in YAML."""
