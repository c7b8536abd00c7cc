"""Images read at other places or in other sizes."""
