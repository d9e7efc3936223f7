"""The commands on the user's side: how they are installed, and the programs themselves."""
