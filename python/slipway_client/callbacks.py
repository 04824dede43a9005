"""Where the server's callbacks come in. They only say that it is worth to look: what a rollout came to is read from the API."""

import secrets
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, unquote

MOST_BYTES = 256 * 2**20


class CallbackListener:
    """`public_url`: how the server reaches it, where that is not the address itself."""

    def __init__(self, host="127.0.0.1", port=0, public_url=None):
        self.key = secrets.token_urlsafe(24)
        self._told = {}
        listener = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 60

            def do_POST(self):
                length = int(self.headers.get("Content-Length") or 0)
                if length > MOST_BYTES:
                    self.close_connection = True
                    return self._answer(413)
                self.rfile.read(length)
                given = self.headers.get("Authorization") or ""
                if not secrets.compare_digest(given.encode(), f"Bearer {listener.key}".encode()):
                    return self._answer(401)
                listener._ring(unquote(self.path.strip("/").split("/")[0]))
                self._answer(200)

            def _answer(self, status):
                text = b'{"ok":true}' if status == 200 else b"{}"
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 1024

        self._server = Server((host, port), Handler)
        self._url = public_url or f"http://{host}:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def urls(self, rollout_id):
        """Of completion and grade; from here on it is listened for."""
        self._told[rollout_id] = threading.Event()
        return tuple(f"{self._url.rstrip('/')}/{quote(rollout_id, safe='')}/{each}" for each in ("completion", "grader"))

    def wait(self, rollout_id, seconds):
        """Until something was said of the rollout, or for so long."""
        event = self._told.get(rollout_id)
        if event is None:
            threading.Event().wait(seconds)
        elif event.wait(seconds):
            event.clear()

    def forget(self, rollout_id):
        self._told.pop(rollout_id, None)

    def close(self):
        self._server.shutdown()
        self._server.server_close()

    def _ring(self, rollout_id):
        event = self._told.get(rollout_id)
        if event is not None:
            event.set()
