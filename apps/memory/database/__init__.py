"""SQL beyond the ORM: comparing texts whatever their case, looking into tags, statements written by hand."""
