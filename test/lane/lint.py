"""Judges HTTP responses with httplint: a JSON list on stdin, one JSON object on stdout."""

import base64
import json
import sys
import time

from httplint import HttpRequestLinter, HttpResponseLinter


def judge(r):
    request = HttpRequestLinter()
    request.process_request_topline(r["method"].encode(), r["url"].encode(), r["version"].encode())
    request.process_headers([(n.encode(), v.encode()) for n, v in r["sent"]])
    request.finish_content(True)

    response = HttpResponseLinter(start_time=time.time(), no_content=r["method"] == "HEAD")
    response.request = request
    response.is_head_response = r["method"] == "HEAD"
    response.base_uri = r["url"]
    response.process_response_topline(r["version"].encode(), str(r["status"]).encode(), r["phrase"].encode())
    response.process_headers([(n.encode(), v.encode()) for n, v in r["fields"]])
    response.feed_content(base64.b64decode(r["body"] or ""))
    response.finish_content(True)
    return [
        {"level": n.level.value, "name": type(n).__name__, "subject": n.subject, "summary": n.summary}
        for note in response.notes
        for n in [note, *note.subnotes]
    ]


json.dump({r["name"]: judge(r) for r in json.load(sys.stdin)}, sys.stdout)
