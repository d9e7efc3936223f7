"""Configuration of Kueue, Volcano and KAI to ours, and back."""
