"""Calls to models. Each wire protocol is one module, and all of them share one HTTP session."""
