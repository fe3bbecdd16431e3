"""The dashboard: pages rendered here, kept fresh by a little script. No CDN, no build.

Every screen is a module with `routes(site)`; `site.py` is what they share, `figures.py` the numbers that all
of them show, `templates/` what they look like. Screens read through the client and the store's look-ups only,
so a page costs the same whatever the store holds.
"""
