"""Amounts of money on the usage page."""

from django import template

register = template.Library()

CHEAP = 0.01  # dollars


@register.filter
def money(dollars: float) -> str:
    """`$12.30`, and below a cent with the fractions of a cent that calls cost: `$0.0023`."""
    return f"${dollars:,.2f}" if dollars >= CHEAP or dollars == 0 else f"${dollars:.4f}"
