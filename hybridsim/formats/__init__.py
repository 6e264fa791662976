"""The trace formats: a family.  A reader is one file and one line in FORMATS."""
