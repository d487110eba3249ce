"""Reports of a comparison: JSON document, console, Markdown and JUnit XML."""
