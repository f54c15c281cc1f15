"""Jinja templates, as package data."""
