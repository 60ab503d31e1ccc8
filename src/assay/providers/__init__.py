"""Calls to models. Each wire protocol is one module, and all protocols share one HTTP session."""
