"""What is: the record in memory, transactions that change it, the journal that writes them."""
