"""One module for each rule of the workflow: arguments in, a call into the library, files out."""
