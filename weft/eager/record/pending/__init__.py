"""What is pending: values, records, the state of a thread and its modes."""
