"""Language models: the client, the messages that go to one, its answer, errors, and the ledger."""
