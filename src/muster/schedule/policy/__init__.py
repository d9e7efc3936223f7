"""What is decided: order, gate, resume, place, preempt, promise, and why the others wait."""
