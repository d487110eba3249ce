"""Reports of the agentic benchmark: console, HTML, Markdown and the card."""
