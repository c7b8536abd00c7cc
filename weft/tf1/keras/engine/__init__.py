"""What Keras' layers and models are made of: layers, networks, steps, sessions."""
