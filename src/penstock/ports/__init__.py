"""What the core needs from outside: protocols, and what meets the smallest of them with no driver at all."""
