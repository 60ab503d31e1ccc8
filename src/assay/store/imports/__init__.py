"""Write imported runs to the store."""
