"""The project's own tests: run, timed, and watched for data races."""
