"""The offline model: a small rule-based responder behind the same SDK client, for use without any model server.

It understands a handful of phrasings in English and says so; it never passes for a language model.
"""
