"""The route to providers over plain HTTP, for the interfaces that most people use."""
