"""Files beside messages: text, PDFs and images that the user brings. Their words are others' words."""
