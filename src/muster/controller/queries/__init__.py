"""Questions that change nothing, by subject; answered with values from the record or the store."""
