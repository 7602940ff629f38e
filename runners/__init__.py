"""The runners: one module for each concurrency model."""
