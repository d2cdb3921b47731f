"""The commands of the command line, one module for each kind, and the options that they share."""
