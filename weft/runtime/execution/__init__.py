"""One foreign call per step: the native driver, its tables and its threads."""
