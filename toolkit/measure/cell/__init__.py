"""The measured process of the main job: one cell, one round."""
