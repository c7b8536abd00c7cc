"""Which forms of kernels programs need: run programs, write `weft/library/forms.txt`."""
