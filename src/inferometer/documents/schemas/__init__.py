"""JSON Schemas of the documents, generated from their types: `python -m inferometer.documents.schemas` writes them anew."""
