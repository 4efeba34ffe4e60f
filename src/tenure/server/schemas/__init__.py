"""Request and response models. Requests reject unknown fields."""
