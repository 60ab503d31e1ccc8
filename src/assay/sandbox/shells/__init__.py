"""Shells in which agents' commands and tests run: one shell for each trial, confined in one of several ways."""
