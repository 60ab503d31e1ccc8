"""Run untrusted code and render untrusted pages, with limits on time, memory and output."""
