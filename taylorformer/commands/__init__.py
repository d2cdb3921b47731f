"""The commands of the command line, and the options that they share."""
