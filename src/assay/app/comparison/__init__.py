"""Compare the answers and grades of several candidates side by side."""
