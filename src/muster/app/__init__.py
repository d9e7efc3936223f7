"""The composition root: every part is made and joined here, by hand."""
