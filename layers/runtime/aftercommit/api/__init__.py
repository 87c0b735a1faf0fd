"""The routes of the HTTP API, by subject. Each decodes, makes one call and encodes.

They stand here and not beside the function's handler, since a layer is compiled when it is built, and what
is beside a handler in each cold start.
"""
