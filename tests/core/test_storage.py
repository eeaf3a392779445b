from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from xmtc.core.config import Settings
from xmtc.core.errors import ModelError
from xmtc.core.labels import Concept, LabelSet
from xmtc.core.storage import ALIGNED, MANIFEST, Details, FolderReader, Manifest, check_target, write_folder


class Inner(Settings):
    b: int


class Made(Settings):
    a: Inner


class MadeDetails(Details):
    depth: int


MADE = Manifest("linear", {"a": {"b": 1}}, 3, 2, 10, "ab" * 32, MadeDetails(depth=2))
LABELS = LabelSet.build(
    ["x", "y"], [Concept("y", "why", ("w",), "a letter", ("top",)), Concept("z", parents=("y", "x"))]
).with_counts([4, 2, 0, 0])
ARRAYS = {"weights": np.arange(6, dtype=np.float32).reshape(2, 3), "starts": np.array([0, 3], dtype=np.int64)}


def write(folder, overwrite=False, arrays=ARRAYS):
    with write_folder(folder, overwrite=overwrite) as out:
        out.labels(LABELS)
        out.arrays("tree-0", arrays)
        out.tensors("network", {"b": np.ones(2, np.float32), "a": np.zeros((1, 2), np.float16)})
        out.manifest(MADE)
    return Path(folder)


def files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_round_trip(tmp_path):
    reader = FolderReader(write(tmp_path / "new" / "model"))
    assert reader.method == "linear"
    assert reader.holds(MADE)
    assert not reader.holds(replace(MADE, seed=4))
    manifest, config, labels = reader.open(Made, MadeDetails)
    assert manifest == MADE
    assert config == Made(a=Inner(b=1))
    assert labels.concepts() == LABELS.concepts()
    assert labels.n_labels == 2
    assert labels.counts.tolist() == [4, 2, 0, 0]
    found = reader.arrays("tree-0")
    assert {name: array.tolist() for name, array in found.items()} == {n: a.tolist() for n, a in ARRAYS.items()}
    assert not found["weights"].flags.writeable
    assert isinstance(found["weights"].base, np.memmap)  # on disk until used
    assert load_file(reader.folder / "network.safetensors")["a"].dtype == np.float16
    assert reader.arrays("tree") == {}


def test_weights_begin_where_kernels_want_them(tmp_path):
    random = np.random.default_rng(0)
    whole = {
        "bias": random.normal(size=7).astype(np.float32),
        "codes": random.integers(-9, 9, size=(16, 4), dtype=np.int8),
        "empty": np.zeros((0, 3), np.float32),
        "half": random.normal(size=(32, 3)).astype(np.float16),
        "labels": np.arange(5),
        "one": np.array(2.5),  # stored with a shape of (1,)
        "rows": random.normal(size=(9, 16)).astype(np.float32).T,
        "seen": np.array([True, False]),
    }
    with write_folder(tmp_path / "model") as out:
        out.tensors("network", whole)
        out.manifest(MADE)
    path = tmp_path / "model" / "network.safetensors"
    found = load_file(path)
    assert found.keys() == whole.keys()
    for name, array in whole.items():
        assert found[name].dtype == array.dtype
        assert np.array_equal(found[name], np.atleast_1d(array))
    size = int.from_bytes(path.read_bytes()[:8], "little")
    header = json.loads(path.read_bytes()[8 : 8 + size])
    odd = {name for name, entry in header.items() if (8 + size + entry["data_offsets"][0]) % ALIGNED}
    assert odd <= {name for name, array in whole.items() if array.nbytes % ALIGNED}


def test_same_content_same_bytes(tmp_path):
    one, two = write(tmp_path / "one"), write(tmp_path / "two")
    assert [path.read_bytes() for path in files(one)] == [path.read_bytes() for path in files(two)]
    text = (one / MANIFEST).read_text()
    assert str(tmp_path) not in text


@pytest.mark.parametrize("harm", ["cut", "flip", "gone"])
def test_every_harmed_file_is_refused_by_name(tmp_path, harm):
    whole = write(tmp_path / "whole")
    names = [path.relative_to(whole) for path in files(whole)]
    assert len(names) == 5
    for name in names:
        folder = tmp_path / "harmed"
        shutil.copytree(whole, folder)
        content = (folder / name).read_bytes()
        if harm == "cut":
            (folder / name).write_bytes(content[: len(content) // 2])
        elif harm == "flip":
            middle = len(content) // 2
            (folder / name).write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        else:
            (folder / name).unlink()
        with pytest.raises(ModelError, match="model.json" if name.name == MANIFEST else name.name) as error:
            FolderReader(folder)
        assert "\n" not in str(error.value)
        shutil.rmtree(folder)


def test_an_edited_setting_is_refused(tmp_path):
    folder = write(tmp_path / "model")
    path = folder / MANIFEST
    path.write_text(path.read_text().replace('"seed": 3', '"seed": 4'))
    with pytest.raises(ModelError, match=r"model\.json is cut or altered"):
        FolderReader(folder)


def test_a_newer_format_names_what_reads_it(tmp_path):
    folder = write(tmp_path / "model")
    raw = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps({**raw, "format": 99}))
    with pytest.raises(ModelError, match=r"format 99, and this xmtc reads up to 1; upgrade to xmtc 0\.1\.0 or later"):
        FolderReader(folder)


@pytest.mark.parametrize("content", ["[]", "{}", "3", '{"format": "x"}', "{"])
def test_a_manifest_that_is_none(tmp_path, content):
    (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(ModelError, match=r"model\.json is cut or altered"):
        FolderReader(tmp_path)


def test_no_folder_and_no_model(tmp_path):
    with pytest.raises(ModelError, match="does not exist"):
        FolderReader(tmp_path / "nowhere")
    with pytest.raises(ModelError, match=r"not a model folder: it has no model\.json"):
        FolderReader(tmp_path)


def test_what_exists_is_kept_unless_overwriting_is_allowed(tmp_path):
    folder = write(tmp_path / "model")
    with pytest.raises(ModelError, match="exists already"):
        write(folder)
    write(folder, overwrite=True, arrays={"weights": np.zeros(1)})
    assert FolderReader(folder).arrays("tree-0")["weights"].tolist() == [0.0]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    precious = tmp_path / "thesis"
    precious.mkdir()
    (precious / "chapter.txt").write_text("years of work")
    with pytest.raises(ModelError, match="is not a model; it is not overwritten"):
        write(precious, overwrite=True)
    assert (precious / "chapter.txt").read_text() == "years of work"


def test_a_failed_save_leaves_the_old_model(tmp_path):
    folder = write(tmp_path / "model")
    before = [path.read_bytes() for path in files(folder)]

    def fail():
        with write_folder(folder, overwrite=True) as out:
            out.labels(LABELS)
            raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError):
        fail()
    assert [path.read_bytes() for path in files(folder)] == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_killed_save_leaves_nothing_that_loads_and_the_next_cleans_up(tmp_path):
    script = (
        "import os, signal, numpy as np\n"
        "from xmtc.core.storage import write_folder\n"
        f"with write_folder({str(tmp_path / 'model')!r}) as out:\n"
        "    out.arrays('tree-0', {'weights': np.ones(1000)})\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=False)
    assert not (tmp_path / "model").exists()
    (left,) = tmp_path.iterdir()
    with pytest.raises(ModelError):
        FolderReader(left)
    write(tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.skipif(os.name == "nt", reason="a file as parent is told apart otherwise on Windows")
def test_places_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match=r"cannot write the model to .*model"):
        check_target(tmp_path / "file" / "model")
    if os.path.isdir("/proc/self"):  # where even root may not write
        with pytest.raises(ModelError, match="cannot write the model to /proc/"):
            check_target("/proc/self/model")


def test_details_and_settings_of_another_method_are_refused(tmp_path):
    class Others(Details):
        width: int

    reader = FolderReader(write(tmp_path / "model"))
    with pytest.raises(ModelError, match=r"model.json does not fit method 'linear': width: Field required"):
        reader.open(Made, Others)
    with pytest.raises(ModelError, match=r"does not fit method 'linear': a\.b: Extra inputs"):
        reader.open(type("Closed", (Settings,), {"__annotations__": {"a": Settings}}), MadeDetails)
