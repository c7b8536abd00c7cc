"""Graph-to-graph passes, each a pure function; `pipeline` lists them all."""
