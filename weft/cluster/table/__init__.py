"""Tables of rows by id on the servers of a cluster."""
