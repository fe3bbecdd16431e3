"""`penstock completion`: what a shell needs to complete commands, options, and names of lanes and pools."""

from typing import Final

import click
from click.shell_completion import get_completion_class

HOW: Final = {
    "bash": 'add to ~/.bashrc: eval "$(penstock completion bash)"',
    "zsh": 'add to ~/.zshrc: eval "$(penstock completion zsh)"',
    "fish": "run: penstock completion fish > ~/.config/fish/completions/penstock.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(HOW)))
def completion(shell: str) -> None:
    """Print the script that lets a shell complete commands and options.

    \b
    bash   eval "$(penstock completion bash)"          in ~/.bashrc
    zsh    eval "$(penstock completion zsh)"           in ~/.zshrc
    fish   penstock completion fish > ~/.config/fish/completions/penstock.fish
    """  # noqa: D301 - \b keeps click from filling the lines
    from penstock.cli.main import main  # noqa: PLC0415 - main imports this module

    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(made(main, {}, "penstock", "_PENSTOCK_COMPLETE").source())
