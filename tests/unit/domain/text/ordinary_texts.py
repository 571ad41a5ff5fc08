"""Texts that resemble secrets, but contain none."""

from __future__ import annotations

from tests.unit.domain.text.key_samples import WHOLE_KEY

# Ordinary texts, one per line. Texts of several lines are below.
ORDINARY = r"""
commit 9f3a7405d1c2b6e8a4f0c3d2e1b5a6978890abcd
index 83db48f..bf269f4 100644
HEAD is now at 9f3a740 Spare the command of an inner task
git log --format=%H -n 1 9f3a7405d1c2b6e8a4f0c3d2e1b5a6978890abcd
git clone https://github.com/psf/requests.git
git clone git@github.com:psf/requests.git
git push ssh://git@example.com:2222/x.git main
From https://gitlab.com/group/project
550e8400-e29b-41d4-a716-446655440000
request id 6ba7b810-9dad-11d1-80b4-00c04fd430c8 took 3 ms
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
url(data:font/woff2;base64,d09GMgABAAAAAAZAABAAAAAADWwAAAXhAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAA)
Digest: sha256:9b2a8f3c1d4e5f60718293a4b5c6d7e8f90123456789abcdef0123456789abcd
docker pull alpine@sha256:9b2a8f3c1d4e5f60718293a4b5c6d7e8f90123456789abcdef0123456789abcd
"integrity": "sha512-aB3dE6gH9jK2mN5pQ8sT1vW4yZ7aB3dE6gH9jK2mN5pQ8sT1vW4yZ7aB3dE6gH9jK2mN5pQ8sT1vW4yZ7aBcdEf=="
Successfully built 3e4f5a6b7c8d
md5 d41d8cd98f00b204e9800998ecf8427e  empty.txt
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGaB3dE6gH9jK2mN5pQ8sT1vW4yZ7aB3dE6gH9jK2mN5 bob@host
The key fingerprint is SHA256:aB3dE6gH9jK2mN5pQ8sT1vW4yZ7aB3dE6gH9jK2mN5p
xai-explainability-toolkit-v2, rpa_process_automation_report_2026, pul-request-of-the-week-31
docs/glft-2026-report.md glagent-1.2.tar.gz nvapi-2.0 figd_v2 pscale_tkn_v1 tskey-auth-page
dapi.example.com ATCTT3x ops_eyJ sl.u.example dp.pt.example.org bedrock-api-key-rotation-2026
"e2b_": "https://registry.example.com/e2b_-/e2b_-1.0.0.tgz", vcp_deployment_2026_11_16_production
resolved "https://registry.yarnpkg.com/r8_/-/r8_-7.22.5.tgz#5f4e3a2b1c0d9e8f7a6b5c4d3e2f1a0b9c8d7e6f"
h1:xBvKrtPlaHa0vY2uQ8sT1vW4yZ7aB3dE6gH9jK2mN5p= zh:0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8
"@octokit/auth-token": "^6.0.0", "jsonwebtoken": "~9.0.2-beta.1", "csrf-token": "1.x", "plugin-secret": "v1.2.3"
"jsonwebtoken": "workspace:^", "tiktoken": "npm:@types/tiktoken@9", "auth-token": "latest"
"jsonwebtoken": "git+https://github.com/auth0/node-jsonwebtoken.git#v9.0.2"
tiktoken = "^0.7.0"
  jsonwebtoken: 9.0.2(patch_hash=abc)
token_count=512
max_tokens: 4096
max_tokens=128000
num_tokens = 131072
max_token=131072
total_tokens: 1234567, prompt_tokens: 1230000
{"prompt_tokens": 12, "completion_tokens": 34, "total_tokens": 46}
{"token": "Hello", "logprob": -0.31}
{"token": "Paris", "tag": "LOC"}
{"eos_token": "</s>", "pad_token": "[PAD]", "unk_token": "<unk>"}
"bos_token": "begin_of_text1"
nextPageToken: CAUQAA12345
NextToken=eiJ2MSI6InRva2VuMTIz
aws s3api list-objects --starting-token abc123def
--eos-token 128001
tokens per second: 45.2
passwordless sudo is configured
passwordless=true
SECRET_SANTA=bob
SECRET_SANTA_LIST=/tmp/santa.txt
secretary: Alice
--password-file path
--password-file=/run/secrets/pw
--password-stdin < pw.txt
docker login --username bob --password-stdin
--token-file /var/run/token
--secret-name my-secret
--no-password
psql --no-password -h localhost
password: {nothing}
Password: {nothing}
Enter password: {nothing}
Enter passphrase for key '/home/bob/.ssh/id_ed25519': {nothing}
[sudo] password for bob: {nothing}
Password for 'https://bob@github.com': {nothing}
passwd: password updated successfully
password: incorrect
Password: required
ERROR 1045 (28000): Access denied for user 'root'@'localhost' (using password: YES)
FATAL: password authentication failed for user "bob"
error: invalid token: expected identifier
SyntaxError: Unexpected token < in JSON at position 0
SyntaxError: Unexpected token: 'export'
unexpected token: 'if2then'
SyntaxError: Unexpected token: "x1y2z3" at line 3
expected token: 'end4if', found token 'fi'
const UNEXPECTED_TOKEN = /^Unexpected token '?(.)'?(,)? /i
access_key: us-east-1
access_key: "eu-west-3"
api_key: europe-west1
secret: db-credentials-2
DB_PASSWORD=(set)
DB_PASSWORD=(not set), API_TOKEN=(hidden)
  + password = (sensitive value)
DB_PASSWORD = (known after apply)
the machine needs a password to start
use a default login and password to avoid a prompt
enter login and password below
machine HOST login USER password PASSWORD
login with password authentication
password qwerty1
aws configure set region us-east-1
aws configure get aws_secret_access_key
aws configure set aws_secret_access_key $SECRET
git config --global credential.helper store
how to configure password policies
configure token authentication
https://example.com/?next=%2Fa%3Fpage%3D2%26sort%3Dname
https://example.com/?q=token%20ring&signature=v4
https://example.com/?design=0123456789abcdef0123456789abcdef
https://example.com/x?sig=$SIG&signature=<signature>
sig=0123456789abcdef0123456789abcdef
gpg: Signature made Sun Jun 21 10:00:00 2026
def test(signature=inspect.signature(function), sig=None):
verify(body, sig=compute_sha256_signature(body), signature=sha256_of_the_body)
var a=1;sig=compute_sha256_signature;
parse error near token: EOF
TOKEN: IDENT
Token(type='NAME', value='x')
unexpected token ')' at line 12
token = next(tokens)
token = self.lexer.token()
token = tokens[i]
token = parser.peek
tok, token := lex.Next(), 1
for token in tokens: print(token)
if token == "abc123": pass
token == 'abc12345'
def login(user: str, password: str) -> None:
def login(user, password=None, token=None):
async def get(self, token: Optional[str] = None):
client = Client(token=token, secret=secret)
client = Client(token=self.token, password=args.password)
connect(password=password)
connect(password=get_password(), user=user)
password = getpass.getpass()
password = input("Password: ")
api_key = os.environ["API_KEY"]
api_key = os.getenv("API_KEY", "")
API_KEY = os.environ.get("API_KEY")
SECRET_KEY = get_random_secret_key()
const token = req.headers.authorization
const { token } = await response.json();
const apiKey = process.env.API_KEY;
interface Login { user: string; password: string; }
type Props = { token?: string, secret: string }
password: z.string().min(8),
password: hashedPassword,
PASSWORD = "password"
AUTH_TOKEN = 'auth_token'
INVALID_PASSWORD = "Invalid password, try again"
"password": "Enter your password"
"forgotPassword": "Forgot your password?"
"password": "Mot de passe"
"wrongPassword": "Try again later"
"password": "at least 8 characters"
"password_hint": "mother's maiden name"
"password": "Minimum length: 12"
fetch(url, { credentials: 'include' })
fetch(url, { credentials: "same-origin" })
Access-Control-Allow-Credentials: true
withCredentials: true
<input type="password" name="password" required>
<label for="token">Token</label>
<a href="next.html" accesskey="n">Next</a>
AttributeOID.CHALLENGE_PASSWORD: "challengePassword",
def load(backend: "Backend", private_key: "_EllipticCurvePrivateKey"):
input[type=password] { color: red; }
.sk-folding-cube .sk-cube1 { width: 50% }
<div class="sk-toggleable__content sk-estimator-id-1">
class="btn sk-btn sk-btn-primary"
pip install sk-learn scikit-learn
npm install sk-internationalization-toolkit
npm ERR! sk-learn not found
npm_config_cache=/tmp/npm npm_lifecycle_event=test
npm_package_name=my-package
npm_package_dependencies_react_router_dom=6.0.0
hf_transfer is enabled
from hf_olmo import hf_configuration_utilities
HF_HOME=/data/hf
pypi-publish-to-index step finished
ghp_ tokens are personal
the prefix is ghp_, gho_ or github_pat_
ghs_count=3
glpat- is the prefix of GitLab
task-key=value
task-key: value
disk-usage: 45%
risk-assessment-for-production-deployments-2026
primary_key=id
primary key: id
foreign_key: user_id
sort_key=created_at
key=value
KEY=value
keys: 12
KEYBOARD=us
public_key: ssh-ed25519
cache-key: linux-node-a1b2c3d4e5f6
key: ${{ runner.os }}-node-${{ hashFiles('**/package-lock.json') }}
GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}
env GITHUB_TOKEN=$GITHUB_TOKEN make release
export TOKEN="$(cat /run/secrets/token)"
TOKEN=$(vault read -field=token secret/ci)
docker build --secret id=npmrc,src=.npmrc .
docker service create --secret site.key nginx
kubectl get secret db-credentials -o yaml
secret/db-credentials created
secretKeyRef: { name: db, key: password }
secretName: web-tls
imagePullSecrets: [regcred]
secret: db-credentials
GOOGLE_APPLICATION_CREDENTIALS=/home/bob/key.json
GOOGLE_APPLICATION_CREDENTIALS=key.json
ansible-playbook --private-key ~/.ssh/id_rsa site.yml
ansible-playbook --private-key id_rsa site.yml
ssh -i ~/.ssh/id_rsa -p 2222 bob@host
mkdir -p src/main/java
cp -pr a b
docker run -p 8080:80 nginx
docker run --name mysql -p3306:3306 -d mysql:8
mysql -u root -p shop
mysql -uroot -h db -P 3306 shop
systemctl restart mysql
usage: x [-h] [--token TOKEN] [--password PASSWORD]
  --token string        GitHub token
  --token TEXT          GitHub token
  --password            Password for the registry
  --api-key             API key to use
use --password to set one, or --token instead
--token and --password are exclusive
the --username and --password options cannot be used
Token: "#d8dee9",
authorization = base64.decodebytes(authorization)
the option --token is required
curl -u bob https://example.com
curl -HUser-Agent:crawler2 https://example.com
curl -XPUT localhost:9200/shop
zip -r a.zip src && mkdir -P build1
gzip -P 4workers a
unzip -o a.zip
ssh-keygen -t ed25519 -N "" -f id_ed25519
ssh-keygen -lf id_ed25519.pub
ldapsearch -x -W -b dc=example
7z x a.7z -oout1
cd src;PWD=/home/bob make
first_pass: done1
render_pass=shadow1
--root_pwm 3a
OLDPWD=/home/bob
curl -H 'Authorization: Bearer $TOKEN' https://example.com
curl -H "Authorization: Bearer ${TOKEN}" https://example.com
WWW-Authenticate: Bearer realm="example"
Authorization: required
authorization is optional here
the Bearer token is missing
http://localhost:8080/@vite/client
http://localhost:8080/x?mail=bob@example.com
Listening on http://127.0.0.1:3000
https://bob@example.com/x
https://example.com:8443/path
https://bob:$PASSWORD@example.com
https://bob:***@example.com
mailto:bob@example.com
postgres://localhost:5432/shop
s3://bucket/key/a1b2c3d4
PATH=/usr/local/bin:/usr/bin:/bin
HOME=/home/bob
PWD=/home/bob/project
OLDPWD=/home/bob
SSH_AUTH_SOCK=/tmp/ssh-aB3dE6gH9jK2/agent.123
DBUS_SESSION_BUS_ADDRESS=unix:path=/run/user/1000/bus
LS_COLORS=rs=0:di=01;34:ln=01;36:mh=00
XDG_SESSION_ID=2
TERM=xterm-256color
LANG=en_US.UTF-8
TOKENIZERS_PARALLELISM=false
PASSWORD_STORE_DIR=/home/bob/.password-store
SECRETS_DIR=/run/secrets
============================= test session starts ==============================
tests/unit/test_token.py::test_a_token_is_read PASSED                    [ 12%]
tests/test_password.py ....F..                                           [ 40%]
FAILED tests/test_auth.py::test_password[secret-1] - AssertionError: assert 'a' == 'b'
E       assert token.kind == 'NAME'
collected 412 items / 3 deselected
src/token.c:14:5: error: use of undeclared identifier 'secret'
src/lex.rs:10:9: warning: unused variable: `token`
error[E0425]: cannot find value `password` in this scope
note: expected token: `;`
undefined reference to `token_next(char const*)'
SELECT id, password FROM users WHERE token IS NOT NULL;
CREATE TABLE users (id INT, password TEXT NOT NULL, api_key TEXT);
UPDATE users SET token = NULL WHERE id = 3;
INSERT INTO tokens (token, secret) VALUES (?, ?);
ALTER TABLE users ADD COLUMN password_hash TEXT;
/home/bob/secrets/token.txt
./src/auth/password/reset.tsx
lib/python3.11/site-packages/token.py
node_modules/js-tokens/index.js
from secrets import token_hex
import { Token } from "./token";
grep -rn "-----BEGIN RSA PRIVATE KEY-----" src
keys/a.pem:1:-----BEGIN RSA PRIVATE KEY-----
"-----BEGIN PRIVATE KEY-----" + body + "-----END PRIVATE KEY-----"
no -----END PRIVATE KEY----- found
at 10:00:00 AA Battery low: 12345678:AA
AKIA is the prefix of an access key
ASIA/PACIFIC and EUROPE
Asia/Tokyo
SKU SK123 SK-1
eyJ is how JSON begins in base64
SG.Namespace.Class
version=1.2.3 build=4567
added 1523 packages, and audited 1524 packages in 12s
Downloading torch-2.3.0-cp311-cp311-manylinux1_x86_64.whl (779.1 MB)
[INFO] BUILD SUCCESS
warning: secret scanning found nothing
Compiling tokio v1.37.0
ok  	example.com/auth/token	0.012s
rotate the credentials before Friday
credentials: see the wiki
"""
SEVERAL_LINES = (
    "-----BEGIN CERTIFICATE-----\n" + WHOLE_KEY + "\n-----END CERTIFICATE-----\n",
    "-----BEGIN PUBLIC KEY-----\n" + WHOLE_KEY + "\n-----END PUBLIC KEY-----\n",
    WHOLE_KEY,
    "keys/one/of/many.pem:1:-----BEGIN PRIVATE KEY-----\nkeys/another/of/many.pem:1:-----BEGIN PRIVATE KEY-----\n",
    "password:\n  min_length: 12\n  hash: argon2\n",
    "tokens:\n  - name\n  - number\n",
    "private_key: |\n  see the vault\n",
    '{\n  "token": null,\n  "password": "",\n  "credentials": {\n    "user": 1\n  }\n}',
)
ORDINARY_LINES = [line.replace("{nothing}", "") for line in ORDINARY.split("\n") if line]
ORDINARY_TEXTS = (*ORDINARY_LINES, "\n".join(ORDINARY_LINES), *SEVERAL_LINES)
