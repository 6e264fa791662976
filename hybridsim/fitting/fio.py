"""From fio's results to a model."""
