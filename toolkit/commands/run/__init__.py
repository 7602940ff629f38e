"""gilscope run: options into a request, the request measured and reported."""
