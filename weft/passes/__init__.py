"""Graph to graph: each pass is pure; `pipeline` is the table of contents."""
