"""The code within the sandbox: compiled once by the interpreter that runs it, and bound read-only at /opt/izzy. It imports
nothing of Izzy's, nothing that it can do without (starting is most of a call's time), and speaks Python 3.9."""

PIP_SHIM = '''\
"""Stands where pip would: asks the host for the packages. Only within the sandbox of a build."""
import http.client, sys
words = sys.argv[1:]
options = [w for w in words[1:] if w.startswith("-") and w not in ("-q", "--quiet", "-U", "--upgrade", "-r", "--requirement", "--user", "--no-cache-dir", "--break-system-packages")]
if words[:1] != ["install"] or options or len(words) < 2:
    sys.exit("In this sandbox: pip install NAME[==VERSION] ..., or pip install -r requirements.txt. Nothing else of pip is there.")
lines, files = [], False
for word in words[1:]:
    if word in ("-r", "--requirement"):
        files = True
    elif files:
        lines += open(word).read().splitlines()
        files = False
    elif not word.startswith("-"):
        lines.append(word)
connection = http.client.HTTPConnection("127.0.0.1", 3128)
connection.request("POST", "http://pip.izzy.internal/install", "\\n".join(lines).encode())
answer = connection.getresponse()
text = answer.read().decode("utf-8", "replace").strip()
print(text, file=sys.stdout if answer.status == 200 else sys.stderr)
sys.exit(answer.status != 200)
'''

PYTHON_SHIM = """\
#!/bin/sh
# python and python3 are the one Python of the sandbox, and "-m pip" is the pip that is there.
if [ "$1 $2" = "-m pip" ]; then shift 2; exec pip "$@"; fi
exec {python} "$@"
"""
