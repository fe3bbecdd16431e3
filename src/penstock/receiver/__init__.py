"""A receiver for messages that Penstock sends: for `penstock listen`, and for tests (penstock.testing).

It takes whatever is posted, says how it compares with what came before (retry, duplicate, out of order, badly
signed), keeps a log that survives a crash, and answers as it is told to.
"""
