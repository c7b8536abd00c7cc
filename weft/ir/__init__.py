"""The graph: element types, shapes, frozen nodes and what holds them. Knows no operation."""
