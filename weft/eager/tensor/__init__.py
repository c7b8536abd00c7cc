"""What a tensor is: handle, views, in-place changes, autograd, hooks, tracing, printing."""
