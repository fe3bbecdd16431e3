"""What every SQL store shares: written once, in portable SQL, on a small `Tx`."""
