"""xmtc doctor: show what is installed."""

from __future__ import annotations

from xmtc.app.cli.options import Json


def doctor(json: Json = False) -> None:
    """Show versions, threads, CPU instructions, caches, encoders and missing extras.

    Include the output in bug reports.
    """
    from xmtc.app.cli.console import megabytes, print_json
    from xmtc.app.doctor import examine

    found = examine()
    if json:
        print_json(found)
        return
    threads, cache = found["threads"], found["cache"]
    limit = "" if threads["quota"] is None else f", container's limit {threads['quota']}"
    state = "" if cache["writable"] else ", not writable: set XMTC_CACHE to a writable folder"
    lines = {
        "xmtc": f"{found['xmtc']}, Python {found['python']}, {found['system']}",
        "packages": ", ".join(f"{name} {version or 'missing'}" for name, version in found["packages"].items()),
        "threads": f"{threads['used']} of {threads['cores']} cores{limit}",
        "variables": ", ".join(f"{name}={value}" for name, value in found["variables"].items()) or "none",
        "instructions": ", ".join(found["instructions"]) if found["instructions"] is not None else "unknown",
        "cache": f"{cache['folder']}, {megabytes(cache['bytes'])}{state}",
        "kernels": "compiled" if found["kernels"] else "not compiled; run `xmtc warmup`",
    }
    lines |= {f"encoders in {place}": ", ".join(names) or "none" for place, names in found["encoders"].items()}
    complete = [name for name, missing in found["extras"].items() if not missing]
    lines["extras"] = ", ".join(complete) if found["extras"] else "unknown: xmtc runs from a source tree"
    width = max(map(len, lines))
    for name, line in lines.items():
        print(f"{name:{width}}  {line}")
    for name, command in found["install"].items():
        print(f"{'missing':{width}}  {name} ({', '.join(found['extras'][name])}): {command}")
