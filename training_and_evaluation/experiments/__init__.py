"""Experiments on tasks: presets, runs, records, and the tables and pictures made of them."""
