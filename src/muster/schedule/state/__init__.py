"""What is kept from plan to plan: who waits, who holds what, and what they count for."""
