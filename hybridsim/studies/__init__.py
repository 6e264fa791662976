"""Studies: from a user's question to runs, one file and one function of the same name each."""
