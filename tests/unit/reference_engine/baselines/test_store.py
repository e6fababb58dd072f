import hashlib
import json

import pytest

from reference_engine.baselines.manifest import Manifest
from reference_engine.baselines.store import BaselineStore, StoredBaseline
from ringtrue.errors import NewerStoreError, StoreError, UsageError
from tests.unit.reference_engine.baselines.sources import build, tiny_request


def put(store, manifest: bytes) -> str:
    """A folder whose name is right, whatever the manifest says."""
    baseline_id = hashlib.sha256(manifest).hexdigest()
    (store.root / baseline_id).mkdir(parents=True)
    (store.root / baseline_id / "manifest.json").write_bytes(manifest)
    return baseline_id


async def test_the_id_is_the_hash_of_the_manifest_file(small, corpus, source, store):
    stored = await build(small, corpus, source, store)
    data = (stored.folder / "manifest.json").read_bytes()
    assert stored.id == stored.manifest.id == hashlib.sha256(data).hexdigest()
    assert store.get(stored.id[:6]) == stored


async def test_the_manifest_says_all_that_the_content_depends_on(small, corpus, source, store):
    stored = await build(small, corpus, source, store, states=True)
    body = json.loads((stored.folder / "manifest.json").read_bytes())
    request = body["request"]
    assert body["schema"] == 1
    assert request["model"] == {
        "name": str(small.name),
        "fingerprint": small.fingerprint,
        "weights": small.weights_hash,
        "tokenizer": small.tokenizer_hash,
        "template": small.template_hash,
        "dtype": "fp32",
        "vocabulary_size": 258,
        "hidden_size": 64,
        "context_length": 256,
    }
    assert request["corpus"] == {"digest": corpus.digest(), "sequences": 7, "tokens": 256}
    assert (request["k"], request["states"], request["source"]) == (20, "float32", {"kind": "exact"})
    assert request["environment"]["device"] == "cpu"
    assert request["environment"]["threads"] >= 1
    assert set(request["environment"]["versions"]) == {
        "python",
        "ringtrue",
        "torch",
        "transformers",
        "pyarrow",
    }
    assert sum(shard["rows"] for shard in body["shards"]) == corpus.tokens


async def test_every_part_of_a_request_makes_another_one(small, corpus, source):
    request = tiny_request(small, corpus)
    others = [tiny_request(small, corpus, k=3), tiny_request(small, corpus, states=True)]
    assert len({request.digest(), *(other.digest() for other in others)}) == 3
    assert tiny_request(small, corpus).digest() == request.digest()


def test_a_store_that_is_not_there_holds_nothing(tmp_path):
    assert BaselineStore(tmp_path / "nowhere").ids() == []


def test_a_store_that_is_no_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="file: the store cannot be read: Not a directory"):
        BaselineStore(tmp_path / "file").ids()


@pytest.mark.parametrize("name", ["abc", "", "xyz", "../etc", "ABC"])
def test_an_unknown_id_says_how_to_see_the_known_ones(store, name):
    with pytest.raises(UsageError, match=f"no baseline '{name}'.*ringtrue baseline list"):
        store.get(name)


def test_an_ambiguous_beginning_names_the_ids_it_could_mean(store):
    for last in "12":
        (store.root / f"abc{last}".ljust(64, "0")).mkdir(parents=True)
    with pytest.raises(UsageError, match=r"2 baselines begin with 'abc'.*abc10000000, abc20000000"):
        store.get("abc")


def test_a_newer_baseline_is_refused_as_such_and_the_others_are_listed(store):
    newer = put(store, b'{"schema": 2, "something": "else"}')
    with pytest.raises(NewerStoreError, match=r"schema 2, this one reads 1.*Upgrade") as caught:
        store.get(newer)
    assert caught.value.exit_code == 2
    assert [type(entry) for entry in store.all()] == [NewerStoreError]


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (b"", "no JSON object"),
        (b"[]", "no JSON object"),
        (b"{}", "no JSON object with a schema"),
        (b'{"schema": "one"}', "no usable schema"),
        (b'{"schema": 0}', "no usable schema"),
        (b'{"schema": 1}', "request: Field required"),
        (b'{"schema": 1, "request": 5}', "request: "),
    ],
)
def test_a_damaged_manifest_is_named(store, manifest, message):
    baseline_id = put(store, manifest)
    with pytest.raises(StoreError, match=rf"manifest\.json: the manifest is damaged: .*{message}.*Delete"):
        store.get(baseline_id)


async def test_a_manifest_that_was_changed_is_no_longer_believed(small, corpus, source, store):
    stored = await build(small, corpus, source, store)
    file = stored.folder / "manifest.json"
    file.write_bytes(file.read_bytes().replace(b'"dtype": "fp32"', b'"dtype": "bf16"'))
    with pytest.raises(StoreError, match="its hash is not the id"):
        store.get(stored.id)
    file.unlink()
    with pytest.raises(StoreError, match="cannot be read: No such file"):
        store.get(stored.id)


async def test_a_damaged_neighbour_does_not_hide_the_others(small, corpus, source, store):
    stored = await build(small, corpus, source, store)
    put(store, b"{}")
    found = list(store.all())
    assert [entry for entry in found if isinstance(entry, StoredBaseline)] == [stored]
    assert store.find(stored.manifest.request) == stored


async def test_a_manifest_comes_back_equal(small, corpus, source, store):
    stored = await build(small, corpus, source, store)
    manifest = store.get(stored.id).manifest
    assert isinstance(manifest, Manifest)
    assert manifest.to_bytes() == (stored.folder / "manifest.json").read_bytes()
