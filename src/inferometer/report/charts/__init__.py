"""Charts as SVG inside a page: no script, no network, colours from the page's style sheet."""
