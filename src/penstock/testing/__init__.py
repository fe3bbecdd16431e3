"""For tests of Penstock itself, of adapters and of applications that embed it."""
