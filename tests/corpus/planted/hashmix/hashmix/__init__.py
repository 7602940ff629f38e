from ._mix import mix

__all__ = ["mix"]
