"""`penstock openapi`: the document of the API, as every node of this version serves it."""

import click


@click.command()
def openapi() -> None:
    """Print the OpenAPI 3.1 document of the API, for generators of clients and for tests.

    No node has to run: it is the document of this version, which a node has at /api/openapi.json.

    \b
    penstock openapi > penstock.json
    """  # noqa: D301 - \b keeps click from filling the lines
    from penstock.described import api_document  # noqa: PLC0415 - the server takes long to import

    click.echo(api_document())
