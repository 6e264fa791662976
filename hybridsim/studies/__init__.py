"""Studies: each answers one question of a user by runs; file and function have the same name."""
