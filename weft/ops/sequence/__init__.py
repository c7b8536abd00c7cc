"""Operations over whole sequences."""
