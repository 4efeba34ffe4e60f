"""Clients that mean harm, with small credentials or none, and a worker next to them."""
