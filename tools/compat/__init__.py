"""The pages of `docs/compat`: which public names of other libraries Weft has.

- `listing`: writes the names of an installed library, `python -m tools.compat.listing torch`;
- `page`: writes the pages from the listings, `python -m tools.compat`.
"""
