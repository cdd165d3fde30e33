"""spec/recorded.py: writes what another library computed, for spec/recorded.lua: a value a line of
JSON, after a line that says by which script and of which library.
"""
import json
import math
import sys


def plain(value):
    """A value as JSON and Lua can say it: numbers that JSON has no form for are texts, and None is
    false, which a list in Lua can hold.
    """
    if value is None:
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return {"inf": "inf", "-inf": "-inf"}.get(str(value), "nan")
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def line(value):
    return json.dumps(plain(value), separators=(",", ":"), ensure_ascii=False)


def rounded(values, digits):
    """Numbers with so many digits."""
    return [float(f"{v:.{digits}g}") for v in values]


def write(script, library, values, out=sys.stdout):
    """Writes the values: script is the path of the one that computed them, from the root of the
    tree; library is the module that it asked.
    """
    head = {"written_by": script, "library": f"{library.__name__} {library.__version__.split('+')[0]}"}
    for value in [head, *values]:
        print(line(value), file=out)
