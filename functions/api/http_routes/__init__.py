"""The routes of the API by subject. Each decodes, makes one call and encodes."""
