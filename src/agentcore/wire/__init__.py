"""The wire: what a server and its clients send each other, as frames, request models and problems."""
