"""What only programs for PyTorch ask for: versions, compilers that give the function back, types."""
