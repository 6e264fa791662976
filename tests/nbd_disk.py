"""A file as an NBD export: `python tests/nbd_disk.py FILE SOCKET`, a thread for each connection.

As real servers do, it carries out several requests of a connection at a time, and those of a
client that is gone.
"""

import errno
import os
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from hybridsim.serving import nbd

THREADS = 8


class Disk:
    """The file, served at a path."""

    def __init__(self, file, path, export=None):
        self.fd = os.open(file, os.O_RDWR)
        self.export = export or nbd.Export(os.fstat(self.fd).st_size, can_zero=False)
        self.before = lambda: None  # called before each answer
        self.clients = []
        self.asked = []  # kind, flags, offset and length of each request
        self.listener = socket.socket(socket.AF_UNIX)
        Path(path).unlink(missing_ok=True)
        self.listener.bind(str(path))
        self.listener.listen()

    def start(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.clients.append(client)
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def cut(self):
        """End all connections, and take no more."""
        self.listener.close()
        for each in self.clients:
            each.shutdown(socket.SHUT_RDWR)

    def serve(self, client):
        sends = threading.Lock()
        try:
            if not nbd.shake_hands(client, self.export):
                return
            with ThreadPoolExecutor(THREADS) as pool:
                while (request := nbd.next_request(client)).kind != nbd.DISCONNECT:
                    data = bytearray(request.length if request.kind == nbd.WRITE else 0)
                    nbd.receive_into(client, memoryview(data))
                    self.asked.append(request[:2] + request[3:])
                    pool.submit(self.answer, client, sends, request, data)
        except (nbd.ProtocolError, OSError):
            pass

    def answer(self, client, sends, request, data):
        self.before()
        error, found = nbd.wrong(request, self.export), b""
        if not error:
            try:
                found = self.carry_out(request, data)
            except OSError as failure:
                error = failure.errno or errno.EIO
        try:
            with sends:
                nbd.reply(client, request.cookie, error, memoryview(b"" if error else found))
        except OSError:
            pass

    def carry_out(self, request, data):
        at, length = request.offset, request.length
        if request.kind == nbd.READ:
            return os.pread(self.fd, length, at)
        if request.kind == nbd.WRITE:
            os.pwrite(self.fd, data, at)
        elif request.kind == nbd.TRIM:
            os.pwrite(self.fd, bytes(length), at)
        return b""


if __name__ == "__main__":
    Disk(*sys.argv[1:3]).accept()
