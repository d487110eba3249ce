"""Launchers start load hosts on other machines, and report those that end badly. No launcher is in the timing path."""
