r"""The patterns and words by which `redact` finds strings that may be secrets.

There are few patterns, and they are precise, because a mask over ordinary text may hide what a reader needs.

The time of every pattern must be proportional to the length of the text. So an unbounded repetition must be possessive,
or be the end of the pattern. An unbounded repetition must also not match across a place where the next match might
begin. Only single characters are repeated possessively, because Python 3.11 before 3.11.5 has a bug in
possessive groups.
"""

from __future__ import annotations

# --- formats: the group in parentheses is the part that stays visible ---------------------------

# A word counts as random if it has a digit among its first twenty characters, or at least 32 characters. No
# English word has either property.
_RANDOM = r"(?=[A-Za-z]{0,19}\d|[A-Za-z0-9]{32})[A-Za-z0-9]{20,}"
FORMATS = (
    r"(gh[oprsu]_)(?:[A-Za-z0-9]{10}|\d{1,12}_eyJ)\w*",  # GitHub
    r"(github_pat_)\w{10,}",
    r"(gl(?:pat|ptt|dt|rt|cbt)-)[\w-]{10,}(?:\.\w+)*",  # GitLab
    r"(gl(?:soat|ft|imt|agent|oas|ffct)-)[\w-]{13,}(?:\.\w+)*",
    r"(A[KS]IA)[A-Z0-9]{16}(?![A-Za-z0-9])",  # AWS
    r"(AIza)[\w-]{20,}",  # Google: API key, access token, client secret
    r"(ya29\.)[\w-]{10,}(?:\.[\w-]+)*",
    r"(GOCSPX-|AQ\.Ab8)[\w-]{16,}",
    r"(xox[a-z]-|xapp-\d-)[\w-]{10,}",  # Slack. The next two patterns match webhooks whose URL is the only secret
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[\w/-]{8,}",
    r"(discord(?:app)?\.com/api/webhooks/)\d+/[\w-]{8,}",
    r"(sk-ant-)[\w-]{8,}",  # Anthropic
    r"(sk-(?:proj|svcacct|admin|or-v1|lf)-|nvapi-)[\w-]{16,}",  # OpenAI, OpenRouter, Langfuse, NVIDIA
    rf"(sk-|xai-|pplx-|csk-|tvly-(?:dev-|prod-)?|hf_|gsk_|r8_|e2b_|rpa_){_RANDOM}",  # other providers of models
    rf"(npm_|rubygems_|lin_api_|ntn_|sbp_|napi_|bkua_|vcp_|shp(?:at|ca|pa|ss)_|whsec_|sntryu_|pul-){_RANDOM}",
    r"(lsv2_(?:pt|sk)_|pcsk_|sb_secret_|pscale_(?:tkn|pw)_|figd_|glsa_|CCIP(?:AT|RJ)_|tskey-[a-z]{3,8}-)[\w-]{16,}",
    r"((?:PMAK|NRAK|HRKU)-|fm[12]_|fo1_|dp\.[ps]t\.)[\w+/-]{18,}={0,2}",  # Postman, New Relic, Heroku, Fly, Doppler
    r"((?:ops|glc|sntrys)_eyJ)[\w+/=-]{20,}",  # 1Password, Grafana, Sentry
    r"(AT[AC]TT3x)[\w=-]{20,}",  # Atlassian
    r"([A-Za-z0-9]{14}\.atlasv1\.)[\w-]{20,}",  # Terraform
    r"(\w{3}\dQ~)[\w.~-]{31,34}",  # Entra
    r"(dapi)[0-9a-f]{32}(?![A-Za-z0-9])",  # Databricks
    r"(ABSKQmVkcm9ja0FQSUtleS|bedrock-api-key-)[\w+/]{20,}={0,2}",  # AWS Bedrock
    r"([sr]k_(?:live|test)_)[A-Za-z0-9]{10,}",  # Stripe
    r"(pypi-)(?:Ag[\w-]{16,}|\w{40,})",
    r"(do[opr]_v1_)[A-Za-z0-9]{20,}",  # DigitalOcean
    r"(dckr_[op]at_)[\w-]{12,}",  # Docker
    r"(hv[bs]\.)[\w-]{24,}",  # Vault
    r"(SG\.)[\w-]{20,24}\.[\w-]{16,}",  # SendGrid
    r"(SK)[0-9a-f]{32}(?![A-Za-z0-9])",  # Twilio
    r"(\d{8,10}:)AA[\w-]{16,}",  # Telegram
    r"(telegram\.org/(?:file/)?bot\d{5,12}:)[\w-]{12,}",
    # Discord: the first part is a number in base64, which begins with one of these letter pairs.
    r"(M[DTjz]|N[DTjz]|O[DT])[A-Za-z0-9]{21,26}\.[\w-]{6}\.[\w-]{27,}",
    r"(oy2)[a-z0-9]{43}(?![A-Za-z0-9])",  # NuGet
    r"(secret_)[A-Za-z0-9]{43}(?![A-Za-z0-9])",  # Notion
    r"(EAA)[A-Za-z0-9_-]{57,}(?![A-Za-z0-9+/=])",  # Facebook, Square
    r"(sq0[a-z]{3}-)[\w-]{22,}",
    r"(sq[uap]_)[0-9a-f]{40}(?![A-Za-z0-9])",  # SonarQube
    r"(GR1348941)[\w-]{10,}",  # GitLab: registration of a runner
    r"(AKCp)[A-Za-z0-9]{65,}",  # Artifactory
    r"(key-)[0-9a-f]{32}(?![A-Za-z0-9])",  # Mailgun
    r"(AGE-SECRET-KEY-1)[A-Z0-9]{20,}",
    # JSON Web Tokens. Two parts are enough, because a text that begins in the middle of a token lacks the first part.
    r"(?<![_-])(eyJ)[\w-]{8,}+\.[\w-]{16,}+(?:\.[\w-]+)*",
)
# A token may begin at the beginning of a word, after a line end that is escaped in JSON, after a character that is
# escaped in a URL, or after the `bot` of a Telegram URL.
TOKEN = r"(?a)(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2})|(?<=/bot))(?:" + "|".join(FORMATS) + ")"
DISCORD_SIGNS = ("MD", "MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT")
TOKEN_SIGNS = (
    *DISCORD_SIGNS,
    *("telegram.org/", "oy2", "secret_", "EAA", "sq0", "key-", "squ_", "sqp_", "sqa_", "GR1348941", "AKCp"),
    *("gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "AKIA"),
    *("glsoat-", "glft-", "glimt-", "glagent-", "gloas-", "glffct-", "AQ.Ab8", "nvapi-", "xai-", "pplx-", "tvly-"),
    *("r8_", "e2b_", "rpa_", "rubygems_", "lin_api_", "ntn_", "sbp_", "napi_", "bkua_", "vcp_", "shpat_", "shpca_"),
    *("shppa_", "shpss_", "whsec_", "sntryu_", "pul-", "lsv2_", "pcsk_", "sb_secret_", "pscale_", "figd_", "glsa_"),
    *("CCIP", "tskey-", "PMAK-", "NRAK-", "HRKU-", "fm1_", "fm2_", "fo1_", "dp.pt.", "dp.st.", "TT3x"),
    *(".atlasv1.", "Q~", "dapi", "ABSKQm", "bedrock-api-key-", "dckr_oat_", "hvb."),
    *("ASIA", "AIza", "ya29.", "GOCSPX-", "xox", "xapp-", "hooks.slack.com/", "/webhooks/", "sk-", "npm_", "hf_"),
    *("gsk_", "k_live_", "k_test_", "pypi-", "_v1_", "dckr_pat_", "hvs.", "SG.", "SK", ":AA", "AGE-SECRET", "eyJ"),
)

# --- private keys -----------------------------------------------------------------------------

MARKER = r"(-----(?:BEGIN|END) [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----)"
_BREAK = r"(?:\s|\\[nr])"
# The beginning of a word of base64. An escaped line end before it is not part of the word.
_LINE_START = r"(?:(?<![A-Za-z0-9+/\\])|(?<=\\[nr]))"
_KEY_LINE = rf"""[A-Za-z0-9+/]{{16,}}+={{0,2}}(?:{_BREAK}+|(?=["']|\Z))"""
KEY_BEGUN = rf"{_BREAK}*(?:[A-Z][A-Za-z-]{{2,20}}: [^\n]*+\n\s*+)*(?:{_KEY_LINE})+(?:[A-Za-z0-9+/=]+\Z)?"
KEY_ENDED = rf"{_LINE_START}(?:\A[A-Za-z0-9+/]++{_BREAK}+)?(?:{_KEY_LINE})+(?:[A-Za-z0-9+/=]++{_BREAK}*)?"
# In a PuTTY key, the lines after a line with this text are the private part.
PUTTY_SIGN = "Private-Lines:"
PUTTY_KEY = rf"(Private-Lines: \d{{1,4}}{_BREAK}+)(?:[A-Za-z0-9+/]++={{0,2}}(?:{_BREAK}++|(?=[\"']|\Z)))+"
# Lines of base64, such as a key without its BEGIN and END lines. The text after the last line is kept.
_NEXT_LINE = r"[ \t]*+(?:\r?\n|(?:\\r)?\\n)[ \t]*+"
BASE64_LINES = (
    rf"{_LINE_START}[A-Za-z0-9+/]{{16,}}+={{0,2}}(?:{_NEXT_LINE}[A-Za-z0-9+/]{{16,}}+={{0,2}})*"
    rf"(?:{_NEXT_LINE}[A-Za-z0-9+/]{{1,15}}={{1,2}})?"
)
# Signs: strings that only a private key contains. They are the beginning of each kind of key, the exponent of an RSA
# key with the number that follows only in a private key, and the BEGIN line in base64, as Kubernetes stores it.
KEY_SIGN = (
    r"(?a)MII[\w+/]{3}IBA(?:AK[BC]|DANBgkqhkiG9w0BAQ)|AgMBAAECg[gY]|IDAQABAo[IG]|CAwEAAQK[CB]"
    r"|MHcCAQEEI|MIGkAgEBBD|MIHcAgEBBE|MI(?:GH|G2|Hu)AgEAMB[AM]GByqGSM49|MC4CAQAwBQYDK2V|b3BlbnNzaC1rZXktdjEA"
    r"|LS0tLS1CRUdJTi(?:BQUklWQVRF|BSU0EgUFJJVkFUR|BFQyBQUklWQVRF|BPUEVOU1NIIFBSSVZBV|BFTkNSWVBURUQgUFJJV|BEU0EgUFJJV)"
)
KEY_SIGNS = (
    *("IBAAKB", "IBAAKC", "IBADANBgkqhkiG9w0BAQ", "AgMBAAECg", "IDAQABAo", "CAwEAAQK", "MHcCAQEEI", "MIGkAgEBBD"),
    *("MIHcAgEBBE", "ByqGSM49", "MC4CAQAwBQYDK2V", "b3BlbnNzaC1rZXktdjEA", "LS0tLS1CRUdJTi"),
)

# --- places: every value in these places is a secret, whatever the value looks like ------------

# A value: a text in quotes, a text in escaped quotes, or a word.
VALUE = (
    r"""(?:"(?P<double>[^"\\\n]*+(?:\\.[^"\\\n]*+)*)"|'(?P<single>[^'\\\n]*+(?:\\.[^'\\\n]*+)*)'"""
    r"""|\\++["'](?P<escaped>[^\\"'\n]++)"""
    r"""|(?P<word>[^\s"'`;&|<>\\]++(?:\\(?!["'nrt])[^\s"'`;&|<>\\]*+)*))"""
)
_SAID_NAMES = ("password", "passphrase", "passcode", "api key", "secret key")
# Sentences that state a password, such as "the password was ...". `SAID_SIGNS` finds the lines with such sentences.
# Its strings have the noun and the verb, because " was" alone occurs in many texts without a password.
SAID = (
    rf"""(?ai)(?<![\w-])(?:{"|".join(_SAID_NAMES)}) """
    rf"""(?P<sign>(?:is|was):? ++(?:generated for [^\s:]++: ++)?)`?{VALUE}"""
)
SAID_SIGNS = tuple(f"{name} {verb}" for name in _SAID_NAMES for verb in ("is", "was"))
# A password in a statement of SQL.
SQL = (
    r"""(?ai)(?<![\w-])(?:(?:user|role|to|exists) [\w"'`@%.-]++ (?:identified (?:with [\w'"`]++ )?by|password)"""
    rf"""|(?:with|login|encrypted) password) (?=["']){VALUE}"""
)
SQL_SIGNS = ("identified ", "password '", 'password "')
# A URL with a password. The password ends at the last @, because people forget to escape an @ in a password.
URL = r"""://[^\s/?#:@"'<>]*+:(?P<word>[^\s/?#"'<>,]+)@(?!sha256:)"""
# A user name in a URL that looks like a token, such as the key of a Sentry DSN.
URL_USER = r"""(?a)://(?P<word>[\w-]{20,}+)@(?!sha256:)"""
# All cookies of a request, a response or a command. `COOKIE` then matches each single cookie.
COOKIES = r"""(?ai)(?<![\w-])(?:set-)?cookie\\*+["']?[ \t]*+[:=][ \t]*+\\*+["']?[\w.-]{1,80}=[^\n"'\\]++"""
CURL_COOKIES = r"""(?a)(?<![\w.-])curl [^\n]*+"""
CURL_COOKIE = r"""(?a)(?<= )(?:-[0146fgiklnpqsvGILNORS]*b|--cookie)[ =]?(?:'[^'\n]*+'|"[^"\n]*+"|[^\s'"]++)"""
COOKIE = r"""(?a)(?<![\w.%-])(?P<name>[\w.-]{1,80})=(?P<word>[^\s;,"'\\&]++)"""
# Cookies that give no access, and attributes of cookies.
COOKIE_WORDS = frozenset(("path", "domain", "expires", "max-age", "samesite", "version", "priority", "lang", "theme"))
COOKIE_NAMES = ("sess", "sid", "auth", "token", "login", "csrf", "xsrf", "jwt", "remember")
HEADER = (
    r"""(?ai)(?:(?P<auth>authorization)|x-(?:api-key|auth-token|goog-api-key|vault-token)|private-token)"""
    r"""\\*+["']?[ \t]*+[:=][ \t]*+\\*+["']?(?P<scheme>(?:bearer|basic|token|bot|api-?key|key|ssws) ++)?"""
    r"""(?P<word>[^\s"'\\,;\]]++)"""
)
BEARER = r"(?ai)(?<![\w-])bearer ++(?=[a-z._~+/-]{0,40}\d)(?P<word>[\w.~+/=-]{20,})"
# Signatures in URLs (AWS, Google, Azure and similar), which give access to every reader of the URL until it expires,
# and signatures of requests.
_QUERY = r"(?:(?<=[?&])|(?<=&amp;)|(?<=\\u0026)|(?<=%26)|(?<=%3F))"
SIGNATURE = (
    rf"""(?ai)(?:{_QUERY}(?:sig|signature)(?:=|%3D)|(?<=, )signature=(?=[0-9a-f]{{64}})"""
    r"""|(?:(?<![\w%-])|(?<=%[0-9a-f]{2}))x-(?:amz|goog)-signature\\*+["']?[ \t]*+(?:[:=]|%3D)[ \t]*+\\*+["']?)"""
    r"""(?P<word>[\w%+/=~.-]{16,})"""
)
SIGNATURE_SIGNS = ("sig=", "sig%3d", "signature=", "signature%3d", "-signature")
# An entry of a netrc file, on one line or on several.
_GAP = r"(?:\s|\\[nrt])+"
_WORD = r"""[^\s"'\\]++"""
NETRC = (
    rf"""(?a)(?:(?<![^\s"'])|(?<=\\[nrt]))(?P<entry>machine{_GAP}{_WORD}{_GAP}|default{_GAP})?"""
    rf"""(?P<login>(?:login|account){_GAP}{_WORD}{_GAP}){{0,2}}password{_GAP}"""
    r"""(?:"(?P<double>[^"\\\n]*+(?:\\.[^"\\\n]*+)*)"|(?P<word>[^\s"'\\]++(?:\\(?!["'nrt])[^\s"'\\]*+)*))"""
)
NETRC_BEGUN = (
    r"(?m)^[ \t]*(?:machine\s+\S+|default(?=\s+login))(?:\s+(?:login|account)\s+\S+){0,2}"
    r"(?:\s+(?:login|account|password))?\s*\Z"
)
# Options that mean a password only in one program. A row has a text that the command contains, the pattern of the whole
# command, and the pattern of the option.
PROGRAMS = (
    ("mysql", r"(?a)(?<![\w.-])mysql\w*+ [^\n|;&]*+", r""" ["']?-p(?![\d:.]+(?:\s|\Z))"""),
    ("mariadb", r"(?a)(?<![\w.-])mariadb[a-z-]*+ [^\n|;&]*+", r""" ["']?-p(?![\d:.]+(?:\s|\Z))"""),
    ("sshpass", r"(?<![\w.-])sshpass [^\n|;&]*+", r"""(?<=sshpass) ["']?-p ?"""),
    ("login", r"(?:docker|podman|skopeo|helm registry|(?<![\w.-])az) login [^\n|;&]*+", r" -p "),
    # Only flags without a value may stand before the `u`, because `-HUser-Agent:x` contains no user name.
    (
        "curl",
        r"(?<![\w.-])curl [^\n|;]*+",
        r""" (?:-[0146fgiklnpqsvGILNORS]*+[uU] ?|--(?:proxy-)?user[ =])["']?[^\s:"'-][^\s:"']*+:""",
    ),
    ("curl", r"(?<![\w.-])curl [^\n|;]*+", r" --oauth2-bearer[ =]"),
    ("redis-cli", r"redis-cli [^\n|;&]*+", r" (?:-a|--pass) "),
    ("openssl", r"openssl [^\n|;&]*+", r" -pass(?:in|out)? pass:"),
    ("openssl enc", r"openssl enc [^\n|;&]*+", r" -[kK] "),
    ("zip", r"(?<![\w.-])(?:un)?zip [^\n|;&]*+", r" -P "),
    ("7z", r"(?<![\w.-])7z[ar]? [^\n|;&]*+", r""" ["']?-p"""),
    ("keytool", r"keytool [^\n|;&]*+", r" -(?:src|dest)?(?:store|key)pass "),
    ("ssh-keygen", r"ssh-keygen [^\n|;&]*+", r" -[NP] "),
    ("ldap", r"(?<![\w.-])ldap(?:search|add|modify|delete|passwd|whoami) [^\n|;&]*+", r" -w "),
    ("sqlcmd", r"(?<![\w.-])sqlcmd [^\n|;&]*+", r" -P ?"),
    ("bcp", r"(?<![\w.-])bcp [^\n|;&]*+", r" -P ?"),
    ("mongo", r"(?<![\w.-])mongo(?:sh|dump|restore|import|export)? [^\n|;&]*+", r" -p (?!\d+:)"),
    ("mysqladmin", r"(?<![\w.-])mysqladmin [^\n|;&]*+", r" password "),
    ("twine upload", r"(?<![\w.-])twine upload [^\n|;&]*+", r" -p "),
    ("ipmitool", r"(?<![\w.-])ipmitool [^\n|;&]*+", r" -P "),
    ("lftp", r"(?<![\w.-])lftp [^\n|;&]*+", r" -u [^\s,]++,"),
    ("nmcli", r"(?<![\w.-])nmcli [^\n|;&]*+", r" password "),
    ("freerdp", r"freerdp [^\n|;&]*+", r" /p:"),
    ("ngrok", r"(?<![\w.-])ngrok [^\n|;&]*+", r"(?<=authtoken) (?!-)"),
    (
        "mc config",
        r"(?<![\w.-])mc config host add [^\n|;&]*+",
        r"(?<=mc config host add) (?:[^\s|;&]++ ){3}",
    ),
    ("mc alias", r"(?<![\w.-])mc alias set [^\n|;&]*+", r"(?<=mc alias set) (?:[^\s|;&]++ ){3}"),
    ("snyk auth", r"(?<![\w.-])snyk auth [^\n|;&]*+", r"(?<=snyk auth) (?!-)"),
    ("nuget", r"(?<![\w.-])nuget set[aA]pi[kK]ey [^\n|;&]*+", r"(?<=[kK]ey) (?!-)"),
    (
        "htpasswd",
        r"(?<![\w.-])htpasswd [^\n|;&]*+",
        r" -[a-zA-Z]{0,8}b[a-zA-Z]{0,8}(?: -[^\s]++){0,4}(?: [^\s-][^\s]*+){1,2} ",
    ),
    ("smbclient", r"smbclient [^\n|;&]*+", r""" (?:-U ?|--user[ =])["']?[^\s%"'-][^\s%"']*+%"""),
)

# --- names: a value that is assigned to these names is a secret if it looks like a secret -----

_KEY = (
    r"(?P<key>token|secret|passw(?:or)?d|passphrase|credentials|(?:api|access|private|secret|account|master|encryption"
    r"|signing|subscription|functions|admin|app)[_-]?key"
    r"|secret_key_base|(?<=;)pwd|(?<=; )pwd|(?<![A-Za-z0-9])_auth|(?<![A-Za-z0-9])psk"
    # The credentials of a registry in Docker's `config.json`. Other files use the name `auth` for other values.
    r"""|(?<=["'])auth(?=\\*+["'][ \t]*+:[ \t]*+\\*+["'][A-Za-z0-9+/]{12,}+={0,2}\\*+["'])"""
    r"|(?:db|database|smtp|mail|ftp|ldap|bind|redis|mysql|postgres|mongo|proxy|ssh|sudo|root|admin|user|become)"
    r"_(?:pass|pwd?))"
)
# The part of a name before the key word, such as `DB_` in `DB_PASSWORD`.
LEAD = r"[\w.-]{0,60}?"
# The beginning of a name. A character that is escaped in a URL may precede the name.
_NAME_START = r"(?:(?<![\w.%-])|(?<=%[0-9a-f]{2})|(?<=%)(?![0-9a-f]{2}))"
ASSIGNED = (
    rf"""(?ai){_NAME_START}(?P<name>{LEAD}{_KEY})"""
    rf"""\\*+["']?\]?(?P<sign>[ \t]*+(?:=>|:=|=(?!=)|:(?!:))[ \t]*+|%3D){VALUE}"""
)
# An assignment in quotes, as in a shell. Its value may have spaces. A command in quotes after `-c` is excluded.
ASSIGNED_WHOLE = (
    rf"""(?ai)(?<=(["']))(?<!-c ["'])(?P<name>{LEAD}{_KEY})(?P<sign>=)"""
    r"""(?P<whole>[^"'&;\n]++(?:(?!\1|[&;][\w-]{1,40}=)["'&;][^"'&;\n]*+)*)(?=\1|[&;])"""
)
OPTION = rf"(?ai)(?<![\w-])(?P<name>--?[\w-]{{0,60}}?{_KEY})(?P<sign>[ \t]++){VALUE}"
# `aws configure set aws_secret_access_key value`, and other programs with this syntax.
CONFIGURED = (
    rf"""(?ai)(?<![\w-])config(?:ure)?[ :]set (?:-[\w=./-]++ ){{0,3}}["']?(?P<name>[\w./:@-]{{0,80}}?{_KEY})["']?"""
    rf"""(?P<sign>[ \t]++){VALUE}"""
)
NAME_SIGNS = (
    *("token", "secret", "passw", "passphrase", "key", "credentials", "_pass", "_pw", ";pwd", "; pwd", "_auth"),
    *("psk", '"auth', "'auth"),
)

# Names that are common in code and prose. A value that is assigned to such a name is often not a secret.
VAGUE = frozenset(("token", "secret", "credentials", "auth"))
# Names of tokens that are not secrets, but tokens of lexers, of language models or of pages of results.
OTHER_TOKENS = (
    r"(?:^|[^A-Za-z]|(?<=[a-z])(?=[A-Z]))(?i:next|prev|page|starting|continuation|resume|sync|cancellation|start|stop"
    r"|end|first|last|current|max|min|num|n|per|pad|eos|bos|unk|sep|cls|mask|special|image|unexpected|expected|illegal"
    r"|lookahead)[ _-]?(?i:token)$"
)
REFERENCE = (
    r"(?ai)\$[({]|\$[a-z_]\w*+(?!\$)|\{(?!\w+\}.)|[`<]|\[[a-z]|%(?:[a-z_]+%|[srd]\b|\()"
    r"|!(?:vault|ref|sub|secret|getatt|env|reference)\b|your[_-]|#[0-9a-f]{3,8}$|(?:op|file|vault|sm|ssm|env|arn):"
    r"|\((?:not|set|unset|none|null|empty|hidden|masked|redacted|filtered|omitted|sensitive|encrypted|known)\b"
    r"|process\.env|import\.meta|os\.(?:environ|getenv)|(?:self|this|args|config|settings|secrets|env)\.[a-z_]"
)
PATH = r"(?a)(?:~|\.{1,2})/|/(?:[a-z][a-z-]+|Users|Volumes)(?:/|$)|[\w./-]+\.(?:json|pem|key|txt|ya?ml|env|crt|p12)$"
CODE = r"(?a)[A-Za-z_][\w.]*+[(\[]|[A-Za-z_]+(?:\.[A-Za-z_]+)+$"
# The version of a package. The package may have a name such as `auth-token` or `jsonwebtoken`.
VERSION = (
    r"(?a)(?:[~^=]|[<>]=?)?v?\d{1,4}(?:\.(?:\d{1,6}|[x*])){1,3}(?:-[a-z]{1,8}(?:\.\d{1,6})*)?(?:$|\()"
    r"|(?:workspace|npm|patch|link|portal|catalog|git\+[a-z]{3,5}):|(?:latest|next|canary)$"
)
# Words that end in a number, such as `us-east-1` or `db-credentials-2`, are names and not secrets.
SLUG = r"[a-z]{2,}(?:-[a-z]+)+-?[0-9]{1,2}[a-f]?$"
NOTHING = frozenset(("true", "false", "yes", "no", "on", "off", "null", "none", "nil", "undefined"))
PROSE = frozenset(
    (
        *("str", "string", "bytes", "int", "integer", "number", "bool", "boolean", "any", "object", "text"),
        *("unknown", "required", "optional", "invalid", "incorrect", "wrong", "missing", "expired", "changed"),
        *("updated", "set", "unset", "hidden", "empty", "include", "omit", "same-origin", "bearer", "basic"),
        *("value", "option", "options", "flag", "a", "an", "and", "are", "argument", "as", "at", "before", "by"),
        *("can", "cannot", "for", "from", "has", "if", "in", "instead", "is", "must", "needs", "not", "of", "or"),
        *("requires", "so", "the", "then", "to", "via", "was", "when", "which", "will", "with", "without", "auth"),
        *("authentication", "token", "password", "secret"),
    )
)
PLACEHOLDERS = ("TOKEN", "SECRET", "PASSWORD", "PASS", "KEY", "FILE", "PATH", "NAME", "CREDENTIALS")
# Words in the labels of forms that ask for a password. A text with one of these words is not a password.
ASKING = frozenset(
    (
        *("again", "characters", "choose", "confirm", "enter", "forgot", "here", "hide", "incorrect", "key", "least"),
        *("login", "minimum", "mismatch", "must", "new", "old", "please", "repeat", "reset", "retype", "show", "sign"),
        *("strength", "strong", "try", "type", "weak", "your"),
    )
)
