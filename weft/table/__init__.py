"""Tables of rows by id that grow with the ids seen, and what their updates and lookups need."""
