"""Human review: the queue, items to show, decisions, control items and double review."""
