"""The history of results: entries made of results' documents, the index that holds them, and the check of the newest."""
