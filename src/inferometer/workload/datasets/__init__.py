"""Datasets of the user's: found on disk, read row by row, and made into texts that requests can say."""
