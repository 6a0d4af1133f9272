"""An OpenID Connect issuer as a process of its own, on joserfc, so that what signs is not what checks.

    python oidc_server.py      prints its address on the first line

`/.well-known/openid-configuration` and `/keys` are the protocol's. For the tests: POST `/sign` with `{"claims": {...},
"head": {...}}` answers with a token, POST `/rotate` puts another key in the place of the old one, `/asked` counts how
often the keys were fetched.
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from joserfc import jwt
from joserfc.jwk import ECKey


class Issuer:
    asked = count = 0

    def __init__(self):
        self.rotate()

    def rotate(self):
        self.count += 1
        self.key = ECKey.generate_key("P-256", {"kid": f"key-{self.count}", "use": "sig"})

    def sign(self, wanted):
        head = {"alg": "ES256", "kid": self.key.kid, "typ": "at+jwt"} | wanted.get("head", {})
        return jwt.encode(head, {"iss": url} | wanted["claims"], self.key)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/.well-known/openid-configuration":
            self.say({"issuer": url, "jwks_uri": f"{url}/keys", "token_endpoint": f"{url}/sign"})
        elif self.path == "/keys":
            issuer.asked += 1
            self.say({"keys": [issuer.key.as_dict(private=False)]})
        elif self.path == "/asked":
            self.say({"asked": issuer.asked})
        else:
            self.send_error(404)

    def do_POST(self):
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/rotate":
            issuer.rotate()
            self.say({})
        else:
            self.say({"access_token": issuer.sign(json.loads(data)), "token_type": "Bearer"})

    def say(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
url = f"http://127.0.0.1:{server.server_port}"
issuer = Issuer()
print(url, flush=True)
try:
    server.serve_forever()
except KeyboardInterrupt:
    sys.exit(0)
