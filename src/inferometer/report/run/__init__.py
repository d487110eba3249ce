"""Reports of one run: summary.json, the console's table, Markdown and HTML."""
