"""Secrets are masked in texts of many kinds, and ordinary text is not changed.

The samples are no real secrets. They are put together at run time, so that no secret scanner reports this file.
"""

from __future__ import annotations

import subprocess
import sys
import time
from base64 import b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outlive.domain.text.redact import MASK, may_begin_secret, redact, redact_words
from tests.harmless_texts import HARMLESS
from tests.secret_texts import ASSIGNMENTS

some = settings(max_examples=25, deadline=None)

HEX, MIXED, UPPER = "0123456789abcdef", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7", "AB2CD3EF4GH5JK6L"
BODY = (MIXED * 4)[:84]
BASE64 = (MIXED + "/+") * 8
# The prefix of a token, which stays visible, and the rest of the token.
FORMATS = {
    **{f"gh{letter}_": BODY[:36] for letter in "oprsu"},
    "github_pat_": BODY[:22] + "_" + BODY[:59],
    "glpat-": BODY[:20],
    "AKIA": UPPER,
    "ASIA": UPPER,
    "AIza": BODY[:35],
    "ya29.": BODY[:60],
    "GOCSPX-": BODY[:28],
    "xoxb-": f"{'1' * 12}-{'2' * 12}-{BODY[:24]}",
    "xoxp-": f"{'1' * 12}-{BODY[:32]}",
    "xapp-1-": f"A{'1' * 10}-{BODY[:40]}",
    "sk-": BODY[:48],
    "sk-proj-": BODY[:60] + "-" + BODY[:20],
    "sk-ant-": "api03-" + BODY + "-" + BODY[:8],
    "sk_live_": BODY[:24],
    "rk_live_": BODY[:24],
    "npm_": BODY[:36],
    "pypi-": "AgEIcHlwaS5vcmc" + BODY,
    "hf_": BODY[:34],
    "dop_v1_": HEX * 4,
    "dckr_pat_": BODY[:27],
    "hvs.": BODY[:28],
    "SG.": BODY[:22] + "." + BODY[:43],
    "SK": HEX * 2,
    "123456789:": "AA" + BODY[:33],
    "AGE-SECRET-KEY-1": UPPER * 3,
    "eyJ": f"hbGciOiJIUzI1NiJ9.eyJ{BODY[:40]}.{BODY[:43]}",
    **{f"gl{kind}-": BODY[:20] for kind in ("soat", "ft", "imt", "agent", "oas", "ffct")},
    "AQ.Ab8": "RN6" + BODY[:42],
    **{f"sk-{kind}-": BODY[:40] + "-" + BODY[:20] for kind in ("admin", "svcacct")},
    "sk-lf-": "12345678-1234-1234-1234-123456789abc",
    "nvapi-": BODY[:20] + "_" + BODY[:43],
    **dict.fromkeys(("xai-", "pplx-", "csk-", "tvly-", "tvly-dev-", "r8_", "rpa_", "ntn_", "lin_api_"), BODY[:40]),
    **dict.fromkeys(("rubygems_", "sbp_", "bkua_", "e2b_", "shpat_", "shpss_", "sntryu_", "pul-"), HEX * 3),
    **dict.fromkeys(("napi_", "vcp_", "whsec_", "figd_", "pscale_tkn_", "pscale_pw_", "fo1_", "fm2_"), BODY[:56]),
    "lsv2_pt_": f"{HEX * 2}_{HEX[:10]}",
    "pcsk_": f"{BODY[:6]}_{BODY[:60]}",
    "sb_secret_": f"{BODY[:22]}_{BODY[:8]}",
    "glsa_": f"{BODY[:32]}_{HEX[:8]}",
    "CCIPAT_": f"{BODY[:22]}_{HEX * 2}",
    "tskey-auth-": f"{BODY[:12]}CNTRL-{BODY[:32]}",
    "PMAK-": f"{HEX}{HEX[:8]}-{HEX * 2}",
    "NRAK-": "AB3DE6GH9JK2MN5PQ8ST1VW4Y7Z" + "ABCDEF",
    "HRKU-": "AA" + BODY[:58],
    "dp.pt.": BODY[:43],
    **dict.fromkeys(("ops_eyJ", "glc_eyJ", "sntrys_eyJ"), BODY + "="),
    "ATATT3x": "FfGF0" + BODY + "=1A2B3C4D",
    BODY[:14] + ".atlasv1.": BODY[:67],
    "dapi": HEX * 2,
    "Abc8Q~": BODY[:34],
    "ABSKQmVkcm9ja0FQSUtleS": BODY + "==",
    "bedrock-api-key-": BODY + BODY,
    "dckr_oat_": BODY[:32],
    "hvb.": BODY,
    "hooks.slack.com/services/": f"T{'0' * 8}/B{'0' * 8}/{BODY[:24]}",
    "discord.com/api/webhooks/": f"{'1' * 18}/{BODY[:60]}",
}
FORMATS |= {
    "MT": f"A{BODY[:22]}.G1abcd.{BODY[:38]}",
    "oy2": (HEX * 3)[:43],
    "secret_": BODY[:43],
    "EAA": "C" + BODY + BODY[:40],
    "sq0atp-": BODY[:22],
    **dict.fromkeys(("squ_", "sqp_", "sqa_"), (HEX * 3)[:40]),
    "GR1348941": BODY[:20],
    "AKCp": BODY[:69],
    "sq0csp-": BODY[:43],
    "key-": HEX * 2,
    "api.telegram.org/bot123456:": "ABC-" + BODY[:31],
}
SETTINGS = (
    "{}",
    "deploy --verbose {} --dry-run",
    "export VALUE={} && make",
    "2026-06-21T10:00:00Z INFO logged in with {}, going on",
    '{{"value": "{}", "n": 1}}',
    "value: {}\nother: 1\n",
    "https://example.com/?value={}&page=2",
    "https://example.com/login?next=%2Fx%3Fvalue%3D{}%26page%3D2",
    "https://{}@example.com/x.git",
    '"line\\n{}\\nline"',
    "({})",
    "cut off at its end: {}",
)
WHOLE_KEY = "\n".join((BASE64[:64], BASE64[1:65], BASE64[2:66], BASE64[:20] + "=="))


def missed(shown: dict[str, str]) -> dict[str, str]:
    """Return the texts that are not masked as expected, each with its masked form."""
    return {text: redact(text) for text, wanted in shown.items() if redact(text) != wanted}


def test_token_is_masked_in_every_kind_of_text() -> None:
    """The kinds are commands, assignments, logs, JSON, YAML and URLs. The token's prefix stays visible."""
    for setting in SETTINGS:
        assert not missed({setting.format(p + body): setting.format(p + MASK) for p, body in FORMATS.items()})


def test_a_token_whose_end_is_missing_is_masked() -> None:
    """A token is masked if an output that was cut inside the token has three quarters of it.

    Formats that are recognised by their exact length are left out.
    """
    exact = {"AKIA", "ASIA", "SK", "hvs.", "dapi", "Abc8Q~", "MT", "oy2", "secret_", "sq0atp-", "key-"} | {
        *("squ_", "sqp_", "sqa_", "AKCp"),
    }
    cut = {p: (p + body)[: len(p + body) * 3 // 4] for p, body in FORMATS.items() if p not in exact}
    assert not missed({f"using {token}": f"using {p}{MASK}" for p, token in cut.items()})


@pytest.mark.parametrize("secret", ["hunter2", "a1B2-c3D4_e5F6", HEX * 2])
def test_value_is_masked_when_its_name_or_place_is_that_of_a_secret(secret: str) -> None:
    """Only the secret is masked. The text around it stays."""
    assert not missed({text.format(secret, secret): text.format(MASK, MASK) for text in ASSIGNMENTS})


def test_value_of_a_secret_environment_variable_is_masked_even_if_it_is_a_word() -> None:
    """An ordinary word is masked too, because a weak password is still a secret."""
    for name in ("TOKEN", "DB_PASSWORD", "MY_APIKEY", "SECRET_KEY", "RSA_PRIVATE_KEY", "AWS_CREDENTIALS"):
        for secret in ("swordfish", "x", "SWORDFISH", "123456", "p,q(r)s", "a.b.c", "password"):
            assert redact(f"{name}={secret} make") == f"{name}={MASK} make"
            assert redact(f"{name}={secret}") == f"{name}={MASK}"


def test_quoted_secret_with_spaces_is_masked_whole() -> None:
    """The secret is masked whether the quotes are around the value or around the whole assignment."""
    assert redact("DB_PASSWORD='correct horse' make") == f"DB_PASSWORD='{MASK}' make"
    assert redact("env 'DB_PASSWORD=correct horse' make") == f"env 'DB_PASSWORD={MASK}' make"
    assert redact("sh -c 'DB_PASSWORD=correct make all'") == f"sh -c 'DB_PASSWORD={MASK} make all'"


PASSPHRASES = (
    '{{"password": "{}"}}',
    '{{"user": "bob", "db_password":"{}", "n": 1}}',
    '"{{\\"password\\": \\"{}\\"}}"',
    "{{'passphrase': '{}'}}",
    'password = "{}"',
    '  password: "{}"\n',
    'login --password="{}"',
    'DB_PASSWORD: "{}"',
)


@pytest.mark.parametrize(
    "secret", ["correct horse battery", "Correct Horse Battery Staple", "correct horse 4 battery!"]
)
def test_password_of_several_words_is_masked(secret: str) -> None:
    """A password of several words is masked in JSON, YAML and code."""
    assert not missed({text.format(secret): text.format(MASK) for text in PASSPHRASES})


def test_netrc_password_is_masked_even_if_it_is_a_word() -> None:
    """In a complete entry of a netrc file, a password with any characters is masked."""
    for secret in ("swordfish", "x", "a;b&c|d<e>", "12345"):
        assert redact(f"machine h login u password {secret}\n") == f"machine h login u password {MASK}\n"
    assert redact('machine h login u password "a b"') == f'machine h login u password "{MASK}"'


# The texts before and after a signature.
SIGNED = (
    ("https://b.s3.amazonaws.com/k?X-Amz-Date=20260621T100000Z&X-Amz-Signature=", "&x-id=GetObject"),
    ("https://b.s3.amazonaws.com/k?X-Amz-Expires=300&X-Amz-SignedHeaders=host&X-Amz-Signature=", "' -o k"),
    ("https://b.s3.amazonaws.com/k?Expires=1750500000&Signature=", ""),
    ("https://storage.googleapis.com/b/k?X-Goog-Expires=300&X-Goog-Signature=", "\nnext line"),
    ("https://storage.googleapis.com/b/k?GoogleAccessId=a@b.c&Expires=1&Signature=", '"'),
    ("https://a.blob.core.windows.net/c/b?sv=2022-11-02&sr=b&sp=r&se=2026-06-22T00%3A00%3A00Z&sig=", "&x=1"),
    ("https://a.blob.core.windows.net/c/b?sig=", "&sv=2022-11-02"),
    ("SharedAccessSignature=sv=2022-11-02&amp;sp=r&amp;sig=", "&amp;x=1"),
    ('{"url": "https://a.blob.core.windows.net/c/b?sv=2022-11-02\\u0026sig=', '\\u0026x=1"}'),
    ("https://example.com/login?next=https%3A%2F%2Fexample.com%2F%3Fsv%3D1%26sig%3D", "%26x%3D1"),
    ("https://example.com/login?next=https%3A%2F%2Fb%2Fk%3FX-Amz-Signature%3D", "%26x%3D1"),
    ('{"X-Amz-Signature": "', '"}'),
)


@pytest.mark.parametrize(
    "secret", [HEX * 4, "aB3dE6gH9jK2%2BmN5pQ8sT1vW4yZ7%2Fa%3D", "aB3dE6gH9jK2-mN5pQ8sT1vW4yZ7~a__"]
)
def test_the_signature_of_a_url_is_masked(secret: str) -> None:
    """The signature is masked, because it gives access. The expiry date and permissions in the URL stay visible."""
    assert not missed({f"{before}{secret}{after}": f"{before}{MASK}{after}" for before, after in SIGNED})


def test_the_signature_of_a_request_is_masked() -> None:
    """In an authorization header of AWS, the signature is one of several fields, and only this field is masked."""
    fields = "Credential=x/eu/s3/aws4_request, SignedHeaders=host, Signature="
    assert redact(f"{fields}{HEX * 4}") == f"{fields}{MASK}"


def test_a_password_with_an_at_sign_is_masked_to_its_end() -> None:
    """The `@` in the password is not escaped, because people often forget to escape it."""
    assert redact("ftp://bob:p@ss@host/x") == f"ftp://bob:{MASK}@host/x"


def test_a_password_that_is_written_in_a_sentence_is_masked() -> None:
    """Sentences that give a password are recognised, such as "your passphrase was: X"."""
    assert redact("The password is hunter2.") == f"The password is {MASK}."
    assert redact("your passphrase was: aB3dE6gH") == f"your passphrase was: {MASK}"
    assert redact("The password is 'swordfish'") == f"The password is '{MASK}'"


def test_a_password_that_a_database_prints_at_its_first_start_is_masked() -> None:
    """MySQL prints the password behind the name of the account, and the password is masked there."""
    text = "[Note] A temporary password is generated for root@localhost: "
    assert redact(f"{text}aB3#dE6!gH") == f"{text}{MASK}"


def test_credentials_of_a_docker_registry_are_masked() -> None:
    """The base64 text in `config.json` is masked, although other files use the same key for other values."""
    encoded = b64encode(b"bob:correct-horse-1").decode()
    shown = f'{{"auths": {{"registry.example.org": {{"auth": "{MASK}"}}}}}}'
    assert redact(shown.replace(MASK, encoded)) == shown


def test_user_of_a_url_is_masked_when_it_looks_like_a_token() -> None:
    """The key of a Sentry DSN, for example, is masked, and so is a token without a password."""
    assert redact(f"https://{HEX * 2}@o1.ingest.sentry.io/2") == f"https://{MASK}@o1.ingest.sentry.io/2"
    assert redact("ssh://some-long-user-name-of-ours@example.org") == "ssh://some-long-user-name-of-ours@example.org"


def test_private_lines_of_a_putty_key_are_masked() -> None:
    """The public lines and the text around the key stay."""
    head = f"PuTTY-User-Key-File-3: ssh-ed25519\nPublic-Lines: 1\n{BASE64[:64]}\nPrivate-Lines: 2\n"
    assert redact(f"{head}{BASE64[:64]}\n{BASE64[:10]}==\nPrivate-MAC: 00") == f"{head}{MASK}Private-MAC: 00"


def test_cookies_without_credentials_stay() -> None:
    """The theme of a page and the attributes of a cookie, for example, are not masked."""
    for text in ("Cookie: theme=dark; lang=en", "Set-Cookie: theme=dark; Path=/; Max-Age=3600", "git checkout -b x=1"):
        assert redact(text) == text


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_private_keys_are_masked_whole_and_in_part(kind: str) -> None:
    """A key is masked whole. If a text begins or ends in the middle of a key, the part of the key is masked."""
    begin, end = f"-----BEGIN {kind}PRIVATE KEY-----", f"-----END {kind}PRIVATE KEY-----"
    assert redact(f"a\n{begin}\n{WHOLE_KEY}\n{end}\nb") == f"a\n{begin}{MASK}{end}\nb"
    escaped = WHOLE_KEY.replace("\n", "\\n")
    assert redact(f'{{"k": "{begin}\\n{escaped}\\n{end}\\n"}}') == f'{{"k": "{begin}{MASK}{end}\\n"}}'
    for at in (70, 100, 150, 200):
        assert redact(f"a\n{begin}\n{WHOLE_KEY[:at]}") == f"a\n{begin}{MASK}"
    for at in (1, 60, 66, 100):
        assert redact(f"{WHOLE_KEY[at:]}\n{end}\nb") == f"{MASK}{end}\nb"
    head = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0123\n\n"
    assert redact(f"{begin}\n{head}{WHOLE_KEY}\n") == f"{begin}{MASK}"
    assert redact(f"Info: AES-128-CBC,0123\n\n{WHOLE_KEY}\n{end}") == f"Info: AES-128-CBC,0123\n\n{MASK}{end}"


# The beginnings of private keys, without their markers: RSA twice, elliptic curves, Ed25519, OpenSSH.
HEADS = (
    *("MIIEpA" + "IBAAKCAQEA", "MIIEvQ" + "IBADANBgkqhkiG9w0BAQEFAASC", "MHcC" + "AQEEI", "MIGkAgEB" + "BD"),
    *("MIGHAgEA" + "MBMGByqGSM49", "MC4CAQAw" + "BQYDK2VwBCIEI", "b3BlbnNz" + "aC1rZXktdjEAAAAABG5vbmU"),
)
# Texts that occur in the middle of an RSA key, and in no other base64.
MIDDLES = ("AgMBAA" + "ECggEA", "IDAQAB" + "AoIBA", "CAwEAA" + "QKCAQ")


@pytest.mark.parametrize("head", HEADS)
def test_key_without_markers_is_masked_when_it_begins_as_private_keys_do(head: str) -> None:
    """The key is masked on several lines, on one line, and escaped in JSON."""
    lines = (head + WHOLE_KEY).split("\n")
    for text in ("a\n{}\nFAILED\n", "{}", "key: |\n  {}\nb: 1\n"):
        for line_break in ("\n", "\r\n", "\n  "):
            assert redact(text.format(line_break.join(lines))) == text.format(MASK)
    assert redact('{"k": "a\\n' + "\\n".join(lines) + '\\n"}') == f'{{"k": "a\\n{MASK}\\n"}}'
    assert redact(f"app.key={''.join(lines)}, x") == f"app.key={MASK}, x"


@pytest.mark.parametrize("middle", MIDDLES)
def test_rsa_key_cut_at_both_ends_is_masked_when_it_contains_the_exponent(middle: str) -> None:
    """The key is masked even if its exponent is split over two lines."""
    flat = BASE64[:150] + middle + BASE64[:150]
    for width in range(60, 76):
        lines = "\n".join(flat[at : at + width] for at in range(0, len(flat), width))
        assert redact(f"{lines}\n").startswith(MASK)
        assert BASE64[:16] not in redact(lines)


def test_key_that_is_encoded_in_base64_again_is_masked() -> None:
    """Kubernetes stores keys in this form, and they are masked. Encoded certificates and public keys stay."""
    for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA "):
        key = b64encode(f"-----BEGIN {kind}PRIVATE KEY-----\n{WHOLE_KEY}\n".encode()).decode()
        assert redact(f"client-key-data: {key}\nb: 1") == f"client-key-data: {MASK}\nb: 1"
    for kind in ("CERTIFICATE", "PUBLIC KEY", "RSA PUBLIC KEY"):
        text = "data: " + b64encode(f"-----BEGIN {kind}-----\n{WHOLE_KEY}\n".encode()).decode()
        assert redact(text) == text


def test_text_after_an_incomplete_key_stays() -> None:
    """Only the incomplete key is masked, because an error message after the key must be visible."""
    begin = "-----BEGIN PRIVATE KEY-----"
    assert redact(f"{begin}\n{BASE64[:64]}\nerror: 2 failed\n") == f"{begin}{MASK}error: 2 failed\n"


# Values that are no secrets, although they are assigned to the name of a secret.
REFERENCES = (
    *(
        "$TOKEN",
        "${TOKEN}",
        "${TOKEN:-}",
        "$(cat file)",
        "$(<file)",
        "`cat file`",
        "<token>",
        "",
        "***",
        "******",
        "...",
    ),
    *("true", "false", "null", "None", "1", "512", "4096", "/run/secrets/x", "~/.token", "./token", "../keys/token"),
    *("/Users/bob/token", "key.json", "{{ token }}", "{token}", "%TOKEN%", "[MASKED]", "[redacted]", "YOUR_TOKEN_HERE"),
    *("(set)", "(not set)", "(unset)", "(none)", "(hidden)", "(sensitive value)"),
    *("process.env.TOKEN", 'os.environ["TOKEN"]', "op://vault/item/field", "!vault", "arn:aws:secretsmanager:eu:1:s"),
)


def test_reference_to_a_secret_stays() -> None:
    """A reference is not masked. It says where a secret is stored, that there is none, or that it is masked."""
    for text in (
        "TOKEN={}",
        "export DB_PASSWORD={}",
        'API_KEY="{}"',
        "password: {}",
        '"secret": "{}"',
        "x --token {} y",
    ):
        assert not missed({text.format(value): text.format(value) for value in REFERENCES})


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


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_stays(text: str) -> None:
    """A text that only resembles a secret is not masked, because users search outputs for such texts."""
    assert redact(text) == text


def test_table_of_harmless_texts_is_large_enough() -> None:
    """The table of harmless texts has at least 68 different texts."""
    assert len(set(HARMLESS)) >= 68


def test_ordinary_text_stays() -> None:
    """Hashes, ids, code, prose, prompts, help texts and paths are not masked."""
    assert len(ORDINARY_TEXTS) >= 150
    assert not missed({text: text for text in ORDINARY_TEXTS})


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["mysql", "-u", "root", "-phunter2", "shop"], ["mysql", "-u", "root", f"-p{MASK}", "shop"]),
        (["x", "--password", "correct horse", "-v"], ["x", "--password", MASK, "-v"]),
        (["env", "DB_PASSWORD=correct horse", "make"], ["env", f"DB_PASSWORD={MASK}", "make"]),
        (["docker", "login", "-u", "bob", "-p", "hunter2"], ["docker", "login", "-u", "bob", "-p", MASK]),
        (["sh", "-c", "TOKEN=abc make 'a b'"], ["sh", "-c", f"TOKEN={MASK} make 'a b'"]),
        (["curl", "-u", "bob:hunter2", "http://x"], ["curl", "-u", f"bob:{MASK}", "http://x"]),
        (
            ["aws", "configure", "set", "aws_secret_access_key", "swordfish"],
            ["aws", "configure", "set", "aws_secret_access_key", MASK],
        ),
        (
            ["aws", "--profile", "ci", "configure", "set", "x.aws_secret_access_key", "swordfish", "-v"],
            ["aws", "--profile", "ci", "configure", "set", "x.aws_secret_access_key", MASK, "-v"],
        ),
        (["-x", "mysql", "-phunter2"], ["-x", "mysql", f"-p{MASK}"]),
        (["echo", "machine h login u password p", ">>"], ["echo", f"machine h login u password {MASK}", ">>"]),
        (["echo", "it's", "--token"], ["echo", "it's", "--token"]),
        (["make", "", "a\nb", "'", '"'], ["make", "", "a\nb", "'", '"']),
        ([], []),
    ],
)
def test_redact_words_masks_a_word_by_the_words_before_it(words: list[str], shown: list[str]) -> None:
    """For example, `hunter2` is masked after mysql's option `-p`, where it is a password, but not alone."""
    assert redact_words(words) == shown


PIECES = st.sampled_from(
    (
        *("TOKEN", "password", "secret", "api_key", "--token", "-p", "mysql ", "curl -u a:", "Authorization: Bearer "),
        *("=", ": ", " = ", "'", '"', "\\", "\\n", "\n", " ", ",", "&", ")", "://", "@", "$", "{", "<", "[", "/", "."),
        *("machine ", "login ", "password ", "x ", "aws configure set ", "%3D", "%26", "&sig=", HEADS[0], MIDDLES[0]),
        *("hunter2", "abc", "12345", MASK, MASK[:-1], "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"),
        *(BASE64[:64], "ghp_" + BODY[:36], "eyJ" + FORMATS["eyJ"], "sk-" + BODY[:40], "xoxb-", "é", "\udcff", "\0"),
    )
)
texts = st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=60)


@some
@given(texts)
def test_redact_changes_nothing_in_a_masked_text(text: str) -> None:
    """Masking a masked text again changes nothing and raises no error. A text becomes longer only by its masks."""
    shown = redact(text)
    assert redact(shown) == shown
    assert len(shown) <= 4 * len(text)
    assert shown.count(MASK) or shown == text


@some
@given(st.text(alphabet="abcdefghijlmnqrtuvwxyz ABDEGHIJLMN0123456789\n\t.,-_/()", max_size=200))
def test_redact_returns_a_text_without_a_sign_of_a_secret_as_the_same_object(text: str) -> None:
    """A text without the letters k, o, p and s is not copied, because every sign of a secret has one of them."""
    assert redact(text) is text


@some
@given(st.lists(texts, max_size=5))
def test_redact_words_keeps_the_number_of_words(words: list[str]) -> None:
    """A masked word is replaced by one word, so the number of words stays the same."""
    assert len(redact_words(words)) == len(words)


# Texts that are repeated to fill a long one, and the ends of the long one.
SLOW = (
    *("a", "-", "token=", "TOKEN='", "'token=", "'token=a&b=", "sk-proj-", "eyJ-", "eyJaaaaaaaa.", "://a:", "mysql -p"),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "A" * 64 + "\n",
        "password: ",
        "--token ",
        "token\\",
        "token   ",
        "\\",
        "\n",
        "a.",
    ),
    *("machine ", "machine\n", "machine h ", "login ", "login u ", "password ", "machine h login u ", "default\\n"),
    *(
        "&sig=",
        "?sig=a1",
        "%26sig%3D",
        "x-amz-signature",
        "%3D",
        "token%3D",
        "%26token",
        "config set ",
        "config set a/",
    ),
    *('"password": "a b', '\\"password\\": \\"a ', "A" * 20 + " ", "A" * 20 + "\\n", "A" * 20 + "\n" + " " * 40, "A\n"),
)
ENDINGS = ("", f"!-----END PRIVATE KEY----- {HEADS[0]}!")


def seconds(text: str) -> float:
    """Measure the processor time of masking a text."""
    began = time.process_time()
    redact(text)
    return time.process_time() - began


def test_redact_takes_time_in_proportion_to_the_length() -> None:
    """An eight times longer text takes less than 32 times as long. With a quadratic pattern, it would take 64 times."""
    for piece in SLOW:
        for ending in ENDINGS:
            short, long = (("token=" + piece * size)[:size] + ending for size in (8_000, 64_000))
            redact(short)  # compiles the patterns
            assert seconds(long) < 32 * max(seconds(short), 0.002), (piece, ending)


@pytest.mark.parametrize(
    ("text", "may_begin"),
    [
        ("machine example.com\n", True),
        ("a\nmachine example.com\n  login bob\n", True),
        ("machine example.com login bob password", True),
        ("machine example.com login bob password x\n", False),
        ("the machine example.com\n", False),
        ("https://example.com/?sv=1&sig=aB3", True),
        ("https://example.com/?sv=1&sig=aB3 \n", False),
        ("default\n", False),
        ("default login bob\n", True),
        ("ready? ", False),
    ],
)
def test_may_begin_secret_recognises_the_beginning_of_a_secret(text: str, *, may_begin: bool) -> None:
    """A reader that follows an output needs this result, because it waits for the rest of a secret before masking."""
    assert may_begin_secret(text) is may_begin


def test_redact_imports_re_only_when_a_text_may_contain_a_secret() -> None:
    """A text without a sign of a secret does not import `re`, which would make a launch a third slower."""
    code = "import sys; from outlive.domain.text.redact import redact; redact('make'); print('re' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert result.stdout == "False\n"
