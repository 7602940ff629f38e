"""Figures as plain values, and their drawing by matplotlib."""
