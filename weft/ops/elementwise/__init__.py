"""Operations on single elements, with broadcasting."""
