"""The remote side: a workspace on a server, and conversations that are held there."""
