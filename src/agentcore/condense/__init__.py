"""Making a history shorter without losing the task."""
