"""Write human review: decisions, leases, observations, votes."""
