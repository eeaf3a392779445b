"""docs/RESULTS.md, from benchmarks/results and nothing else.

python -m benchmarks.tables            write it
python -m benchmarks.tables --check    fail if it is not what the results give, or if results do not fit together
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks.machine import ROOT
from benchmarks.sets import SETS
from benchmarks.store import RESULTS, read_result

PAGE = ROOT / "docs" / "RESULTS.md"
SCORES = {  # key of a metric → head of its column
    "P@1": "P@1",
    "P@3": "P@3",
    "P@5": "P@5",
    "nDCG@5": "nDCG@5",
    "PSP@1": "PSP@1",
    "PSP@5": "PSP@5",
    "macro-F@5/few": "macro-F few",
    "macro-F@5/medium": "macro-F medium",
    "macro-F@5/many": "macro-F many",
    "coverage@5/few": "coverage few",
}
_HEAD = """# Results

<!-- Written by `python -m benchmarks.tables` from benchmarks/results. Do not edit. -->

All scores are percentages on the test split, by `xmtc.core.metrics`, for xmtc and rivals alike. Macro-F and coverage
are of the top 5; few, medium and many are labels with at most 20, at most 100 and more training documents. All train
on the same TF-IDF matrix. "Known" truth leaves out labels without training documents, which no model can rank, and
test documents that have no other label; "all" keeps them.

A difference is xmtc − rival in percent points, with the 95 % interval of a paired bootstrap over test documents (1,000
resamples); where that holds 0, the difference is **undecided**.

Training time is from the matrix to the model on disk. Each phase waits a while for a quiet machine; "others" says how
many cores other processes took while it ran. Where that is not close to 0, times say little. Nothing is claimed from
them."""


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description="Write docs/RESULTS.md from benchmarks/results.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is not up to date")
    if not parser.parse_args().check:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(render(), encoding="utf-8")
    found = problems()
    for problem in found:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if found else 0


def problems() -> list[str]:
    """Return, one line each, where the page differs from the results or results from each other."""
    found = []
    for name in _names():
        linear, peers = read_result("linear", name), read_result("peers", name)
        if peers and (linear is None or peers["compared_with"] != linear["ranking"]["sha256"]):
            found.append(
                f"{name}: rivals were compared with another ranking; run python -m benchmarks.peers {name} --rescore"
            )
    if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != render():
        found.append("docs/RESULTS.md is not what the results give; run python -m benchmarks.tables")
    return found


def render() -> str:
    """Return the page."""
    sections = [_HEAD]
    for name in _names():
        linear = read_result("linear", name)
        if linear is not None:
            sections += _section(linear, (read_result("peers", name) or {"rivals": {}})["rivals"])
    return "\n\n".join(sections) + "\n"


def _names() -> list[str]:
    """Sets that have results, the well-known ones first."""
    stored = {path.stem for kind in ("linear", "peers") for path in (RESULTS / kind).glob("*.json")}
    return sorted(stored, key=lambda name: (SETS.index(name) if name in SETS else len(SETS), name))


def _section(linear: dict[str, Any], rivals: dict[str, Any]) -> list[str]:
    """The parts of one set."""
    data, known = linear["data"], linear["reports"]["known"]
    bins = known["labels_in_bin"]
    parts = [
        f"## {linear['set']}",
        f"{data['train_documents']:,} training documents, {data['test_documents']:,} test documents, "
        f"{data['labels']:,} labels. Known truth: {known['n']:,} test documents; labels in it: {bins['few']:,} few, "
        f"{bins['medium']:,} medium, {bins['many']:,} many.",
        _score_table(linear, rivals),
    ]
    failed = {rival: record for rival, record in rivals.items() if "error" in record}
    if failed:
        parts.append("\n".join(f"- {record['title']} failed: {record['error']}" for record in failed.values()))
    compared = [record for record in rivals.values() if "differences" in record]
    if compared:
        parts += ["### xmtc linear − rival", _difference_table(compared)]
    parts += ["### xmtc linear, both truths", _interval_table(linear), "### What ran", _what_ran(linear, rivals)]
    return parts


def _score_table(linear: dict[str, Any], rivals: dict[str, Any]) -> str:
    rows = [("xmtc linear", linear["reports"]["known"]["metrics"], _training_seconds(linear), linear["model_mb"])]
    rows += [
        (record["title"], record["metrics"], record["train"]["seconds"], record["train"]["model_mb"])
        for record in rivals.values()
        if "metrics" in record
    ]
    return _table(
        ["known truth", *SCORES.values(), "train s", "MB"],
        [
            [title, *(f"{scores[key]:.2f}" for key in SCORES), f"{seconds:.1f}", f"{size:.1f}"]
            for title, scores, seconds, size in rows
        ],
    )


def _difference_table(compared: list[dict[str, Any]]) -> str:
    """One row a score, one column a rival."""
    keys = list(compared[0]["differences"])
    return _table(
        ["", *(record["title"] for record in compared)],
        [[SCORES.get(key, key), *(_difference(record["differences"][key]) for record in compared)] for key in keys],
    )


def _difference(found: dict[str, Any]) -> str:
    low, high = found["interval"]
    told = f"{_signed(found['difference'])} [{_signed(low)}, {_signed(high)}]"
    return told if found["decided"] else f"{told} undecided"


def _interval_table(linear: dict[str, Any]) -> str:
    reports = linear["reports"]
    rows = []
    for key, head in SCORES.items():
        cells = []
        for mode in ("known", "all"):
            low, high = reports[mode]["intervals"][key]
            cells.append(f"{reports[mode]['metrics'][key]:.2f} [{low:.2f}, {high:.2f}]")
        rows.append([head, *cells])
    return _table(["", *(f"{mode}, {reports[mode]['n']:,} documents" for mode in ("known", "all"))], rows)


def _what_ran(linear: dict[str, Any], rivals: dict[str, Any]) -> str:
    here = _hardware(linear["facts"])
    lines = [f"- Machine: {here}.", _ran_ours(linear), *(_ran_rival(record, here) for record in rivals.values())]
    if "versions" in linear["data"]:
        packages = ", ".join(f"{package} {version}" for package, version in linear["data"]["versions"].items())
        lines.append(f"- Data: sha256 {linear['data']['sha256']}, made from {packages}.")
    return "\n".join(lines)


def _ran_ours(linear: dict[str, Any]) -> str:
    train, rank = (
        ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in linear["seconds"][phase].items())
        for phase in ("train", "rank")
    )
    memory, machine = linear["peak_rss_mb"], linear["machine"]
    return (
        f"- xmtc linear: {_code(linear['facts'])}; {_flat(linear['config'])}. Seconds of training: {train}; of ranking "
        f"from text: {rank} ({linear['documents_per_second']:,.0f} documents/s). "
        f"{_memory(memory['train'], memory['rank'])} {_busy(machine['train'], machine['rank'])}"
    )


def _ran_rival(record: dict[str, Any], here: str) -> str:
    line = f"- {record['title']}: {_code(record['facts'])}; "
    line += f"{_flat(record['settings'])}; all else its defaults." if record["settings"] else "its defaults."
    if _hardware(record["facts"]) != here:
        line += f" On another machine: {_hardware(record['facts'])}."
    if "metrics" in record:
        train, rank = record["train"], record["predict"]
        line += (
            f" Seconds of training: {train['seconds']:.1f}; of ranking: {rank['seconds']:.1f}. "
            f"{_memory(train['peak_rss_mb'], rank['peak_rss_mb'])} {_busy(train['machine'], rank['machine'])}"
        )
    return " ".join([line, *(f"Note: {note}." for note in record["notes"])])


def _training_seconds(linear: dict[str, Any]) -> float:
    """From the matrix to the model on disk, which is what the rivals' time is too."""
    return float(sum(linear["seconds"]["train"][stage] for stage in ("cluster", "train", "save")))


def _code(facts: dict[str, Any]) -> str:
    packages = ", ".join(f"{package} {version}" for package, version in facts["packages"].items())
    commit = f"{(facts['commit'] or 'unknown')[:12]}{' with uncommitted changes' if facts['dirty'] else ''}"
    return (
        f"commit {commit}, Python {facts['python']}, {packages or 'versions unknown'}, {facts['threads']} threads, "
        f"seed {facts['seed']}"
    )


def _hardware(facts: dict[str, Any]) -> str:
    return f"{facts['cpu']}, {facts['cores']} cores, {facts['ram_gb']:.0f} GB, {facts['system']}"


def _memory(train: float, rank: float) -> str:
    return f"Peak memory: {train:,.0f} MB in training, {rank:,.0f} MB in ranking."


def _busy(train: dict[str, Any], rank: dict[str, Any]) -> str:
    others = [phase["others_cores"] for phase in (train, rank)]
    told = " and ".join("unknown" if value is None else f"{value:.2f}" for value in others)
    return (
        f"Load average before: {train['load_before']:.1f} and {rank['load_before']:.1f}; waited: "
        f"{train['waited_s']:.0f} and {rank['waited_s']:.0f} s; others: {told} cores."
    )


def _flat(settings: dict[str, Any], path: str = "") -> str:
    """Nested settings as --set takes them."""
    return ", ".join(
        _flat(value, f"{path}{key}.") if isinstance(value, dict) else f"`{path}{key}={value}`"
        for key, value in settings.items()
    )


def _signed(value: float) -> str:
    return f"{round(value, 2) + 0.0:+.2f}".replace("-", "−")  # + 0.0: no −0.00


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    sys.exit(main())
