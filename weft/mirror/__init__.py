"""Weft under the names of other libraries: which module and name answers for which, as data."""
