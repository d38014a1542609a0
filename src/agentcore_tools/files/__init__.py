"""What the tools for files have in common: where they may go, how they read, change and show, and what they remember."""
