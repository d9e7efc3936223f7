"""Job scripts of other batch systems, read as requests to Muster."""
