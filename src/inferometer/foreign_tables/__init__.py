"""Arrow and Parquet files that somebody else wrote: what they would take once unpacked, found before anything is."""
