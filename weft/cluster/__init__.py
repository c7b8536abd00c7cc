"""Processes that run one graph together: servers, their devices, and the messages between them."""
