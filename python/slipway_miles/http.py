"""One POST of JSON for each connection, on asyncio alone: thousands of trials wait at once without a thread each, and a cancelled one closes its connection."""

import asyncio
import json
import socket
import ssl
from urllib.parse import urlsplit

HEADER_BYTES = 65_536
# A trial says nothing for an hour; routers forget connections that are silent for some minutes. Numbers are Linux's where Python has no name for them.
KEEP_ALIVE = (("TCP_KEEPIDLE", 4, 60), ("TCP_KEEPINTVL", 5, 30), ("TCP_KEEPCNT", 6, 5))


class AnswerError(Exception):
    """The server did not answer as agreed. `final`: it would not the next time either."""

    def __init__(self, message, final):
        super().__init__(message)
        self.final = final


async def post(url, body, bearer=None):
    """The JSON of an answer of 200 to 299."""
    parts = urlsplit(url)
    payload = json.dumps(body, allow_nan=False).encode()
    secure = parts.scheme == "https"
    reader, writer = await asyncio.open_connection(
        parts.hostname,
        parts.port or (443 if secure else 80),
        ssl=ssl.create_default_context() if secure else None,
        limit=HEADER_BYTES,
    )
    try:
        keep_alive(writer.get_extra_info("socket"))
        lines = [
            f"POST {parts.path or '/'} HTTP/1.1",
            f"Host: {parts.netloc}",
            "Content-Type: application/json",
            "Accept: application/json",
            f"Content-Length: {len(payload)}",
            "Connection: close",
        ]
        if bearer is not None:
            lines.append(f"Authorization: Bearer {bearer}")
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + payload)
        await writer.drain()
        status, headers = await read_head(reader)
        text = (await read_body(reader, headers)).decode("utf-8", "replace")
    except asyncio.IncompleteReadError as error:
        raise AnswerError("the connection ended before the answer did", final=False) from error
    except (asyncio.LimitOverrunError, ValueError) as error:
        raise AnswerError("the answer is not HTTP", final=False) from error
    finally:
        writer.close()
    if not 200 <= status < 300:
        final = status < 500 and status not in (408, 429)
        raise AnswerError(f"answered {status}: {text[:200]}", final)
    try:
        return json.loads(text)
    except ValueError as error:
        raise AnswerError("the answer is not JSON", final=True) from error


def keep_alive(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, number, value in KEEP_ALIVE:
        try:
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name, number), value)
        except OSError:
            pass  # The system's own figures hold.


async def read_head(reader):
    while True:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(head[0].split(" ", 2)[1])
        if status >= 200:
            break  # Whatever is below says only that more comes.
    pairs = (line.partition(":") for line in head[1:] if line)
    return status, {name.strip().lower(): value.strip() for name, _, value in pairs}


async def read_body(reader, headers):
    if "chunked" in headers.get("transfer-encoding", "").lower():
        pieces = []
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            pieces.append(await reader.readexactly(size))
            await reader.readexactly(2)
        return b"".join(pieces)
    if "content-length" in headers:
        return await reader.readexactly(int(headers["content-length"]))
    return await reader.read()
