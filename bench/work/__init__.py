"""One workload a file; one function a contestant, which returns the step to be timed."""
