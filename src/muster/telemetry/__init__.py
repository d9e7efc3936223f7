"""What we can see: what is measured, said as metrics, judged by rules and told to people."""
