"""What exists: frozen values and nothing else. No decision is made here."""
