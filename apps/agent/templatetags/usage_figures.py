"""Amounts of money on the usage page."""

from django import template

from apps.agent.usage_figures import money

register = template.Library()
register.filter("money", money)
