"""What declarations of operations share: rules, attributes, short forms."""
