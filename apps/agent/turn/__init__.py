"""A turn: model and tools by turns, until the model has answered."""
