"""The routes of the server, a file for each part, and what serves them."""
