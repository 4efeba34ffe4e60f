"""The nouns of Tenure: frozen dataclasses and enums, standard library only. No behaviour."""
