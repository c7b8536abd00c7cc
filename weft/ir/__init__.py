"""The graph: element types, shapes, frozen nodes, and the graphs that hold them. Knows no operation."""
