"""Verified deletion: a note or file is taken out of everything Izzy kept of it, and a receipt says so."""
