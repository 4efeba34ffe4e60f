"""Data types shared by all layers: frozen dataclasses and enums, standard library only."""
