#!/usr/bin/env python3
"""Does weft make the tokens that tiktoken makes? Imports each text with a tokenizer, compares token by token, and prints rates of both. Then
random texts of all of Unicode. By hand; needs tiktoken, h5py.
usage: check_tokenizer.py build/weft TOKENIZER TEXT...     TOKENIZER: a folder with vocab.json and merges.txt, or a tiktoken file"""
import base64, json, os, random, subprocess, sys, tempfile, time
import h5py, numpy as np, tiktoken

from gpt2_tokens import PATTERN, ranks_of

weft, where, texts = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), [os.path.abspath(t) for t in sys.argv[3:]]


def ranks():
    if os.path.isfile(where):
        return {base64.b64decode(t): int(r) for t, r in (line.split() for line in open(where, "rb") if line.strip())}
    return ranks_of(json.load(open(f"{where}/vocab.json", encoding="utf-8")))


table = ranks()
end = next(i for i in range(len(table) + 1) if i not in set(table.values()))
other = tiktoken.Encoding("other", pat_str=PATTERN, mergeable_ranks=table, special_tokens={"<|endoftext|>": end})


def compare(path, special=False):
    with tempfile.TemporaryDirectory() as folder:
        words = [weft, "data", "import", "text", path, "--tokenizer", where, "-o", f"{folder}/x.h5"] + ["--special"] * special
        said = subprocess.run(words, check=True, capture_output=True, text=True)
        with h5py.File(f"{folder}/x.h5") as f:
            got = f["tokens"][:]
    text = open(path, encoding="utf-8", newline="").read()
    began = time.time()
    want = np.array(other.encode(text, allowed_special={"<|endoftext|>"}) if special else other.encode_ordinary(text))
    rate = os.path.getsize(path) / 1e6 / (time.time() - began)
    same = len(got) == len(want) and bool((got == want).all())
    first = "" if same else f", from token {next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))} on"
    print(f"{os.path.basename(path)}: {len(want)} tokens, {'the same' if same else 'WRONG' + first}; tiktoken {rate:.1f} MB/s; weft: "
          f"{(said.stdout + said.stderr).splitlines()[0]}")
    return same


good = all([compare(t) for t in texts])
random.seed(1)
some = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
near = [" ", "\n", "'", "s", "ll", "a", "B", "7", "é", "日", "½", "\u00a0", "\u3000", "!", "<|endoftext|>"]
with tempfile.TemporaryDirectory() as folder:
    for name, special, make in (("every character", False, lambda: " ".join(some)), ("in any order", False, lambda: "".join(random.choices(some, k=400000))),
                                ("near each other", True, lambda: "".join(random.choices(near, k=900000)))):
        with open(f"{folder}/{name}", "w", encoding="utf-8", newline="") as f:
            f.write(make())
        good &= compare(f"{folder}/{name}", special)
sys.exit(0 if good else 1)
