"""A store that is a node's API: what clients and the command line do with a store, asked over HTTP.

http.py       one request: connections, keys, and what a problem means
decoding.py   objects of the API as the objects they were made of
store.py      the methods of `ports.store` that people use; what only nodes do is refused
"""
