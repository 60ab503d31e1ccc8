"""Which decisions are allowed and in which order items are reviewed; pure rules."""
