"""The array element type of every column that is inserted, or looked up, in bulk."""

from typing import Final

_BY_TYPE: Final = {
    "bigint": "arrival epoch dead_arrival head level tokens serial",
    "int": "lane ord seq dead_seq sequence send deferrals node n slots lacks claimed settled most",
    "smallint": "keep mode state attempt recoveries revision max_attempts",
    "boolean": "open holds paused",
    "timestamptz": "due_at since start_by finish_by run_at created_at deadline claimed_at sent_at started_at"
    " finished_at ended_at at until visible_at idle_at",
    "bytea": "hash",
    "text": "id message_group grp tenant key target headers pool entity version event correlation payload"
    " reason receipt error result outcome actor action before after verb queue dedup_id name slot phases"
    " operation low high",
}
TYPES: Final = {column: kind for kind, columns in _BY_TYPE.items() for column in columns.split()}
