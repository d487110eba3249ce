"""Reports of a comparison of campaigns: JSON document, console, Markdown, HTML and JUnit XML."""
