"""The HTTP client of everything that is not load: probes, tokenizers, switching, scrapes."""
