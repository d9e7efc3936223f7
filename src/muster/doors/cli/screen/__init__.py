"""What all commands write with: tables, texts, times, colours, terminals."""
