"""What only programs for PyTorch ask for: versions, compilers that give functions back."""
