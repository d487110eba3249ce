"""The record on disk: append-only while running, sealed after."""
