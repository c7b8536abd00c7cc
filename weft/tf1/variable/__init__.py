"""Variables: their scopes, lists and initializers."""
