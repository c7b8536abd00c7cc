"""The graph: element types, shapes, frozen nodes and their containers; knows no operation."""
