"""Who may call the server: keys, their scopes, page cookies, one-use codes, and the audit log."""
