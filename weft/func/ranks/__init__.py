"""Functions over ranks: what each of them computes, and what they exchange, with gradients.

Every rank runs the same program (`weft launch`). An axis name stands for the ranks along it.
"""
