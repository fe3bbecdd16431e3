"""HTTP on a node: jobs in and out, reports, health, metrics. Imported by server commands only.

app.py       the application, put together from the parts below
access.py    who may talk to it: Host, Origin, and which addresses it may listen on
scopes.py    what each route needs, and whether whoever asks has it
bodies.py    what a request carries, checked; payloads are cut out and never rewritten
jobs.py      enqueue, look at, list · outcomes.py executors' reports
health.py    live, ready, metrics · stats.py the figures of the dashboard and of `penstock top`
problems.py  every refusal as RFC 9457 problem JSON, with a hint
server.py    uvicorn inside the loop of the node
"""
