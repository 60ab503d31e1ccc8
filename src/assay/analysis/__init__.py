"""Pure functions that compute results from columns of scores and reviews."""
