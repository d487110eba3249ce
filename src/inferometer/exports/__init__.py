"""What other programs read of a run: one small file for each format; `formats.py` lists them."""
