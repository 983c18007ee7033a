"""Turns: what users do to them, who runs them, and what is stored of them."""
