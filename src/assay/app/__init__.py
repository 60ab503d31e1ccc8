"""The product's verbs, and the wiring of concrete parts."""
