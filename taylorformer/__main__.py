"""Runs the command line as `python -m taylorformer`."""

from taylorformer.cli import main

if __name__ == "__main__":
    main()
