"""The JSON formats of providers, without any transport."""
