# spec/loggers/sync_wandb.py: runs `wandb sync` of the wandb package in a folder, against a server of
# this process that keeps what it is sent, and prints the requests.
#
#   python spec/loggers/sync_wandb.py FOLDER        (the folder above wandb/)
import gzip
import http.server
import json
import os
import subprocess
import sys
import threading


def answer(query, variables, address):
    if "upsertBucket" in query:
        project = {"id": "p", "name": variables.get("project"), "entity": {"id": "e", "name": "me"}}
        return {"upsertBucket": {"inserted": True, "bucket": {
            "id": "aWQ=", "name": variables.get("name"), "displayName": variables["displayName"],
            "config": "{}", "historyLineCount": 0, "project": project}}}
    if "createRunFiles" in query:
        return {"createRunFiles": {"runID": "x", "uploadHeaders": [], "files": [
            {"name": name, "uploadUrl": address + "/up/" + name} for name in variables["files"]]}}
    if "viewer" in query:
        return {"viewer": {"id": "u", "entity": "me", "username": "me", "flags": "{}"}}
    return {"model": {"bucket": None}}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        reply = {}
        if self.path == "/graphql":
            request = json.loads(body)
            print(request.get("operationName"), json.dumps(request.get("variables")))
            reply = {"data": answer(request["query"], request.get("variables") or {}, address)}
        elif "/otel/" not in self.path:
            print(self.path, body.decode(errors="replace"))
        text = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_PUT = do_GET = do_POST

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
address = "http://127.0.0.1:%d" % server.server_port
threading.Thread(target=server.serve_forever, daemon=True).start()
program = os.path.join(os.path.dirname(sys.executable), "wandb")
status = subprocess.run([program, "sync", "--yes"], cwd=sys.argv[1], env={
    **os.environ, "WANDB_BASE_URL": address, "WANDB_API_KEY": "a" * 40}).returncode
sys.exit(status)
