"""What the tools that search have in common: walking a tree, what is ignored, globs, and looking for lines."""
