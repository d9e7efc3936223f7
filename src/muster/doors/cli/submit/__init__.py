"""Commands that hand in jobs: their options, scripts, and the document that is sent."""
