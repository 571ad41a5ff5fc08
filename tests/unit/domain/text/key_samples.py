"""Samples of tokens and private keys.

The samples are no real secrets. They are put together at run time, so that no secret scanner reports this file.
"""

from __future__ import annotations

HEX, MIXED, UPPER = "0123456789abcdef", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7", "AB2CD3EF4GH5JK6L"
BODY = (MIXED * 4)[:84]
BASE64 = (MIXED + "/+") * 8
# The prefix of a token, which is not masked, and the rest of the token, which is.
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
WHOLE_KEY = "\n".join((BASE64[:64], BASE64[1:65], BASE64[2:66], BASE64[:20] + "=="))
# The beginnings of private keys, without their markers: RSA twice, elliptic curves, Ed25519, OpenSSH.
HEADS = (
    *("MIIEpA" + "IBAAKCAQEA", "MIIEvQ" + "IBADANBgkqhkiG9w0BAQEFAASC", "MHcC" + "AQEEI", "MIGkAgEB" + "BD"),
    *("MIGHAgEA" + "MBMGByqGSM49", "MC4CAQAw" + "BQYDK2VwBCIEI", "b3BlbnNz" + "aC1rZXktdjEAAAAABG5vbmU"),
)
# Texts that occur in the middle of an RSA key, and in no other base64.
MIDDLES = ("AgMBAA" + "ECggEA", "IDAQAB" + "AoIBA", "CAwEAA" + "QKCAQ")
