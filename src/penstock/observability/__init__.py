"""What a node tells about itself: subscribers of `ports/events.py`.

metrics.py     Prometheus series, counted from events; depths.py adds what a scrape asks the store, by
               dues.py how long lanes have been behind
live.py        the last minute in numbers, for the dashboard and `penstock top`
health.py      whether the node is ready, and why not
logs.py        how log lines look and what never gets into them; `story.py` says what they tell
enqueueing.py  trace context from whoever enqueues; `tracing.py` makes the spans of a node (otel.py: whether)
supervisor.py  what systemd is told
subscribers.py events to several of these at once
"""
