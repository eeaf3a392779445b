"""The sections of xmtc's linear method and its rivals on one set, from results/linear and results/peers."""

from __future__ import annotations

from typing import Any

from benchmarks.tables.markdown import SCORES, busy, code, difference, flat, hardware, memory, table


def sparse_sections(linear: dict[str, Any], rivals: dict[str, Any]) -> list[str]:
    """Return the parts of one set, but its heading."""
    data, known = linear["data"], linear["reports"]["known"]
    bins = known["labels_in_bin"]
    parts = [
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
    for record in compared:
        if "beside" in record:
            beside = record["beside"]
            rows = [[SCORES.get(key, key), difference(found)] for key, found in beside["differences"].items()]
            fewer = linear["data"]["train_documents"] - beside["documents"]
            parts += [f"### xmtc {beside['run']} − rival", table([beside["title"] + " −", record["title"]], rows)]
            if fewer:
                parts.append(f"Its dev documents, {fewer:,}, were held out of train; the rival trained on all.")
    parts += ["### xmtc linear, both truths", _interval_table(linear), "### What ran", _what_ran(linear, rivals)]
    return parts


def _score_table(linear: dict[str, Any], rivals: dict[str, Any]) -> str:
    rows = [("xmtc linear", linear["reports"]["known"]["metrics"], _training_seconds(linear), linear["model_mb"])]
    rows += [
        (record["title"], record["metrics"], record["train"]["seconds"], record["train"]["model_mb"])
        for record in rivals.values()
        if "metrics" in record
    ]
    return table(
        ["known truth", *SCORES.values(), "train s", "MB"],
        [
            [title, *(f"{scores[key]:.2f}" for key in SCORES), f"{seconds:.1f}", f"{size:.1f}"]
            for title, scores, seconds, size in rows
        ],
    )


def _difference_table(compared: list[dict[str, Any]]) -> str:
    """One row a score, one column a rival."""
    keys = list(compared[0]["differences"])
    return table(
        ["", *(record["title"] for record in compared)],
        [[SCORES.get(key, key), *(difference(record["differences"][key]) for record in compared)] for key in keys],
    )


def _interval_table(linear: dict[str, Any]) -> str:
    reports = linear["reports"]
    rows = []
    for key, head in SCORES.items():
        cells = []
        for mode in ("known", "all"):
            low, high = reports[mode]["intervals"][key]
            cells.append(f"{reports[mode]['metrics'][key]:.2f} [{low:.2f}, {high:.2f}]")
        rows.append([head, *cells])
    return table(["", *(f"{mode}, {reports[mode]['n']:,} documents" for mode in ("known", "all"))], rows)


def _what_ran(linear: dict[str, Any], rivals: dict[str, Any]) -> str:
    here = hardware(linear["facts"])
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
    peak, machine = linear["peak_rss_mb"], linear["machine"]
    return (
        f"- xmtc linear: {code(linear['facts'])}; {flat(linear['config'])}. Seconds of training: {train}; of ranking "
        f"from text: {rank} ({linear['documents_per_second']:,.0f} documents/s). "
        f"{memory(peak['train'], peak['rank'])} {busy(machine['train'], machine['rank'])}"
    )


def _ran_rival(record: dict[str, Any], here: str) -> str:
    line = f"- {record['title']}: {code(record['facts'])}; "
    line += f"{flat(record['settings'])}; all else its defaults." if record["settings"] else "its defaults."
    if hardware(record["facts"]) != here:
        line += f" On another machine: {hardware(record['facts'])}."
    if "metrics" in record:
        train, rank = record["train"], record["predict"]
        line += (
            f" Seconds of training: {train['seconds']:.1f}; of ranking: {rank['seconds']:.1f}. "
            f"{memory(train['peak_rss_mb'], rank['peak_rss_mb'])} {busy(train['machine'], rank['machine'])}"
        )
    return " ".join([line, *(f"Note: {note}." for note in record["notes"])])


def _training_seconds(linear: dict[str, Any]) -> float:
    """From the matrix to the model on disk, which is what the rivals' time is too."""
    return float(sum(linear["seconds"]["train"][stage] for stage in ("cluster", "train", "save")))
