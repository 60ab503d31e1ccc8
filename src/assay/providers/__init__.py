"""One module a wire protocol, over one shared HTTP session."""
