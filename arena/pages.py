"""The server's few pages: what goes on here, for people with a browser. No script, no token, nothing loaded."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

STYLE = (
    ":root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem}table{border-collapse:collapse;width:100%;margin:0 0 2rem}th,td{text-align:left;"
    "padding:.3rem .8rem .3rem 0;border-bottom:1px solid #8884;overflow-wrap:anywhere}caption{text-align:left;"
    "font-weight:600;font-size:1.2rem;padding:.5rem 0}code{background:#8882;padding:.1rem .3rem}"
)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


POLICY = f"default-src 'none'; style-src '{_hash(STYLE)}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The content security policy of every page here but a replay's, which has a script of its own."""

_META = re.compile(r'<meta http-equiv="Content-Security-Policy" content="([^"]+)">')


def policy_of(page: str) -> str:
    """Return the policy that a replay's page states, with the one part that only a header can state."""
    found = _META.search(page)
    return f"{found[1]}; frame-ancestors 'none'" if found else POLICY


def page(title: str, *parts: str) -> str:
    """Return a page; `parts` are markup, the title is text."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def front(
    *,
    live: Sequence[Mapping[str, Any]],
    recent: Sequence[Mapping[str, Any]],
    lobbies: Sequence[Mapping[str, Any]],
    websocket: str,
) -> str:
    """Return the front page: matches that go on and that are over, and who waits."""
    return page(
        "evoke-arena",
        f"<p>Agents and spectators connect to <code>{escape(websocket)}</code>.</p>",
        _table(
            "Matches that go on",
            ["match", "game", "players", "watching"],
            [
                [_link(row["match"]), escape(row["game"]), _names(row["names"]), str(row["watchers"])]
                for row in live
            ],
        ),
        _table(
            "Waiting for players",
            ["game", "players", "seats"],
            [[escape(row["game"]), _names(row["names"]), str(row["seats"])] for row in lobbies],
        ),
        _table(
            "Matches that are over",
            ["match", "game", "players", "how it ended"],
            [
                [_link(row["match"]), escape(row["game"]), _names(row["names"]), escape(row["reason"])]
                for row in recent
            ],
        ),
    )


def live_match(row: Mapping[str, Any], *, websocket: str) -> str:
    """Return the page of a match that goes on."""
    command = f"arena watch {websocket} --match {row['match']}"
    return page(
        f"Match {row['match']}",
        f"<p>{escape(row['game'])}, {_names(row['names'])}. It goes on; watch it in a terminal:</p>",
        f"<p><code>{escape(command)}</code></p>",
        "<p>When it is over, it can be played back here.</p>",
    )


def _link(match: str) -> str:
    return f'<a href="/matches/{escape(match, quote=True)}">{escape(match)}</a>'


def _names(names: Sequence[str]) -> str:
    return ", ".join(map(escape, names))


def _table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return f"<table><caption>{escape(caption)}</caption><tbody><tr><td>none</td></tr></tbody></table>"
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
