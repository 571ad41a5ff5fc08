"""Secrets are masked in texts of many kinds, and ordinary text is not changed.

The samples are no real secrets. They are put together when the tests run, so that no secret scanner reports this file.
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
from tests.unit.domain.text.key_samples import BASE64, BODY, FORMATS, HEADS, HEX, MIDDLES, WHOLE_KEY
from tests.unit.domain.text.ordinary_texts import ORDINARY_TEXTS

some = settings(max_examples=25, deadline=None)
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


def missed(shown: dict[str, str]) -> dict[str, str]:
    """Return the texts that are not masked as expected, each with its masked form."""
    return {text: redact(text) for text, wanted in shown.items() if redact(text) != wanted}


def test_token_is_masked_in_every_kind_of_text() -> None:
    """A token is masked in commands, assignments, logs, JSON, YAML and URLs. Its prefix stays visible."""
    for setting in SETTINGS:
        assert not missed({setting.format(p + body): setting.format(p + MASK) for p, body in FORMATS.items()})


def test_a_token_whose_end_is_missing_is_masked() -> None:
    """If an output was cut inside a token, three quarters of the token are enough to mask it.

    Formats that are recognised by their exact length are left out.
    """
    exact = {"AKIA", "ASIA", "SK", "hvs.", "dapi", "Abc8Q~", "MT", "oy2", "secret_", "sq0atp-", "key-"} | {
        *("squ_", "sqp_", "sqa_", "AKCp"),
    }
    cut = {p: (p + body)[: len(p + body) * 3 // 4] for p, body in FORMATS.items() if p not in exact}
    assert not missed({f"using {token}": f"using {p}{MASK}" for p, token in cut.items()})


@pytest.mark.parametrize("secret", ["hunter2", "a1B2-c3D4_e5F6", HEX * 2])
def test_value_is_masked_when_its_name_or_place_is_that_of_a_secret(secret: str) -> None:
    """A value is masked if its name or its place shows that it is a secret. The text around it stays."""
    assert not missed({text.format(secret, secret): text.format(MASK, MASK) for text in ASSIGNMENTS})


def test_value_of_a_secret_environment_variable_is_masked_even_if_it_is_a_word() -> None:
    """The value of a secret environment variable is masked even if it is an ordinary word.

    Weak passwords are secrets, too.
    """
    for name in ("TOKEN", "DB_PASSWORD", "MY_APIKEY", "SECRET_KEY", "RSA_PRIVATE_KEY", "AWS_CREDENTIALS"):
        for secret in ("swordfish", "x", "SWORDFISH", "123456", "p,q(r)s", "a.b.c", "password"):
            assert redact(f"{name}={secret} make") == f"{name}={MASK} make"
            assert redact(f"{name}={secret}") == f"{name}={MASK}"


def test_quoted_secret_with_spaces_is_masked_whole() -> None:
    """A secret with spaces is masked whole if quotes are around the value, or around the whole assignment."""
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
    """In a netrc file, a password is masked whatever its characters are, even if it is an ordinary word."""
    for secret in ("swordfish", "x", "a;b&c|d<e>", "12345"):
        assert redact(f"machine h login u password {secret}\n") == f"machine h login u password {MASK}\n"
    assert redact('machine h login u password "a b"') == f'machine h login u password "{MASK}"'


# The text before and the text after a signature.
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
    """The signature of a URL is masked, because it gives access. The expiry date and permissions stay visible."""
    assert not missed({f"{before}{secret}{after}": f"{before}{MASK}{after}" for before, after in SIGNED})


def test_the_signature_of_a_request_is_masked() -> None:
    """In an AWS authorization header, only the signature is masked, and not the other fields."""
    fields = "Credential=x/eu/s3/aws4_request, SignedHeaders=host, Signature="
    assert redact(f"{fields}{HEX * 4}") == f"{fields}{MASK}"


def test_a_password_with_an_at_sign_is_masked_to_its_end() -> None:
    """A password in a URL is masked to its end, even if it contains an `@` that was not escaped."""
    assert redact("ftp://bob:p@ss@host/x") == f"ftp://bob:{MASK}@host/x"


def test_a_password_that_is_written_in_a_sentence_is_masked() -> None:
    """A password that is given in a sentence is masked, as in "your passphrase was: X"."""
    assert redact("The password is hunter2.") == f"The password is {MASK}."
    assert redact("your passphrase was: aB3dE6gH") == f"your passphrase was: {MASK}"
    assert redact("The password is 'swordfish'") == f"The password is '{MASK}'"


def test_a_password_that_a_database_prints_at_its_first_start_is_masked() -> None:
    """The password that MySQL prints at its first start, after the name of the account, is masked."""
    text = "[Note] A temporary password is generated for root@localhost: "
    assert redact(f"{text}aB3#dE6!gH") == f"{text}{MASK}"


def test_credentials_of_a_docker_registry_are_masked() -> None:
    """The credentials of a Docker registry are masked in `config.json`. Other uses of the same key are not."""
    encoded = b64encode(b"bob:correct-horse-1").decode()
    shown = f'{{"auths": {{"registry.example.org": {{"auth": "{MASK}"}}}}}}'
    assert redact(shown.replace(MASK, encoded)) == shown


def test_user_of_a_url_is_masked_when_it_looks_like_a_token() -> None:
    """The user of a URL is masked if it looks like a token, as in the DSN of Sentry."""
    assert redact(f"https://{HEX * 2}@o1.ingest.sentry.io/2") == f"https://{MASK}@o1.ingest.sentry.io/2"
    assert redact("ssh://some-long-user-name-of-ours@example.org") == "ssh://some-long-user-name-of-ours@example.org"


def test_private_lines_of_a_putty_key_are_masked() -> None:
    """The private lines of a PuTTY key are masked. Its public lines stay."""
    head = f"PuTTY-User-Key-File-3: ssh-ed25519\nPublic-Lines: 1\n{BASE64[:64]}\nPrivate-Lines: 2\n"
    assert redact(f"{head}{BASE64[:64]}\n{BASE64[:10]}==\nPrivate-MAC: 00") == f"{head}{MASK}Private-MAC: 00"


def test_cookies_without_credentials_stay() -> None:
    """Cookies without credentials stay, for example one for the theme of a page."""
    for text in ("Cookie: theme=dark; lang=en", "Set-Cookie: theme=dark; Path=/; Max-Age=3600", "git checkout -b x=1"):
        assert redact(text) == text


@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "])
def test_private_keys_are_masked_whole_and_in_part(kind: str) -> None:
    """A private key is masked, and so is a part of a key at the beginning or end of a text."""
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


@pytest.mark.parametrize("head", HEADS)
def test_key_without_markers_is_masked_when_it_begins_as_private_keys_do(head: str) -> None:
    """A private key without its markers is masked on several lines, on one line, and escaped in JSON."""
    lines = (head + WHOLE_KEY).split("\n")
    for text in ("a\n{}\nFAILED\n", "{}", "key: |\n  {}\nb: 1\n"):
        for line_break in ("\n", "\r\n", "\n  "):
            assert redact(text.format(line_break.join(lines))) == text.format(MASK)
    assert redact('{"k": "a\\n' + "\\n".join(lines) + '\\n"}') == f'{{"k": "a\\n{MASK}\\n"}}'
    assert redact(f"app.key={''.join(lines)}, x") == f"app.key={MASK}, x"


@pytest.mark.parametrize("middle", MIDDLES)
def test_rsa_key_cut_at_both_ends_is_masked_when_it_contains_the_exponent(middle: str) -> None:
    """If an RSA key was cut at both ends, it is masked if it contains the exponent, even over two lines."""
    flat = BASE64[:150] + middle + BASE64[:150]
    for width in range(60, 76):
        lines = "\n".join(flat[at : at + width] for at in range(0, len(flat), width))
        assert redact(f"{lines}\n").startswith(MASK)
        assert BASE64[:16] not in redact(lines)


def test_key_that_is_encoded_in_base64_again_is_masked() -> None:
    """A key that is encoded in base64 again, as Kubernetes does, is masked.

    Encoded certificates and public keys stay.
    """
    for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA "):
        key = b64encode(f"-----BEGIN {kind}PRIVATE KEY-----\n{WHOLE_KEY}\n".encode()).decode()
        assert redact(f"client-key-data: {key}\nb: 1") == f"client-key-data: {MASK}\nb: 1"
    for kind in ("CERTIFICATE", "PUBLIC KEY", "RSA PUBLIC KEY"):
        text = "data: " + b64encode(f"-----BEGIN {kind}-----\n{WHOLE_KEY}\n".encode()).decode()
        assert redact(text) == text


def test_text_after_an_incomplete_key_stays() -> None:
    """After an incomplete key, the text stays visible, because it may be an error message."""
    begin = "-----BEGIN PRIVATE KEY-----"
    assert redact(f"{begin}\n{BASE64[:64]}\nerror: 2 failed\n") == f"{begin}{MASK}error: 2 failed\n"


# Values that are no secrets, although their variable has the name of a secret.
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
    """A text that says where a secret is stored, that there is none, or that it is masked, is not changed."""
    for text in (
        "TOKEN={}",
        "export DB_PASSWORD={}",
        'API_KEY="{}"',
        "password: {}",
        '"secret": "{}"',
        "x --token {} y",
    ):
        assert not missed({text.format(value): text.format(value) for value in REFERENCES})


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_stays(text: str) -> None:
    """A text that only resembles a secret is not masked, because users search for such texts."""
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
    """A word is masked if the words before it show that it is a secret, as `hunter2` after mysql's option `-p`."""
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
    """A text without k, o, p and s is returned as the same object.

    Every sign of a secret contains one of these letters.
    """
    assert redact(text) is text


@some
@given(st.lists(texts, max_size=5))
def test_redact_words_keeps_the_number_of_words(words: list[str]) -> None:
    """`redact_words` returns as many words as it gets, because it replaces a word by one word."""
    assert len(redact_words(words)) == len(words)


# Texts that are repeated to make a long text, and the ends of this long text.
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
            redact(short)  # The first call compiles the patterns.
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
    """`may_begin_secret` returns whether a text may be the beginning of a secret.

    A reader that follows an output then waits for the rest before it masks.
    """
    assert may_begin_secret(text) is may_begin


def test_redact_imports_re_only_when_a_text_may_contain_a_secret() -> None:
    """`redact` imports `re` only for a text that may contain a secret. The import makes a launch a third slower."""
    code = "import sys; from outlive.domain.text.redact import redact; redact('make'); print('re' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert result.stdout == "False\n"
