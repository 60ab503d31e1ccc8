"""Records, state machines and errors shared by all packages; imports only the standard library."""
