"""What conduct outside the model gains."""
