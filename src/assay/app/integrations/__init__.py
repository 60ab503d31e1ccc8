"""Verbs for other programs: submit single evaluations, and send finished runs."""
