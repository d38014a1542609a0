"""Skills: instructions that are read when they are needed."""
