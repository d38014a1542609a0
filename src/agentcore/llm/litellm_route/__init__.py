"""The route to providers through litellm."""
