"""The lazy graph: recorded calls, call signatures, cached programs, dynamic shapes."""
