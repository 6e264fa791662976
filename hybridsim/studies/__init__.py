"""The questions that users bring, one file and one function of the same name each."""
