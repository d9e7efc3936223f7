"""How state moves: what is let in, what an event changes, what deserves another attempt. Pure."""
