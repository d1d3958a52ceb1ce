#!/usr/bin/env python3
"""A small tokenizer like GPT-2's and what it makes of texts, by Hugging Face's tokenizers and OpenAI's tiktoken, which must agree. Writes
vocab.json, merges.txt, ranks.tiktoken and cases.txt (a text in hexadecimal, its tokens; "-": none).
usage: golden_tokenizer.py tests/golden/tokenizer [TEXT...]     (needs tokenizers, tiktoken; TEXT: files to train on, else README.md and docs)"""
import base64, glob, json, os, sys
import tiktoken
from tokenizers import ByteLevelBPETokenizer

from gpt2_tokens import PATTERN, ranks_of

OTHERS = ["Straße über Köln naïve café déjà vu, où êtes-vous? ", "Привет, мир! Как дела? ", "こんにちは世界。今日は良い天気ですね。", "你好，世界！今天天气很好。",
          "مرحبا بالعالم كيف حالك ", "नमस्ते दुनिया ", "안녕하세요 세계 ", "🎉👍🏽👨‍👩‍👧‍👦 ", "Ελληνικά ", "I'll we've they're it's don't I'm he'd "]
CASES = ["", " ", "  ", "a", "Hello world", "Hello  world", " Hello   world  ", "\n", "\n\n", "a\n\n b", "a \n b", "x\t\ty", "  \n  ", "tabs\t and\r\nlines\r\n\r\n",
         "I'll we've they're it's don't I'm he'd", "I'LL IT'S", "'s 't 're've'm'll'd", "''s '''ll 'lx 'v 'r", "rock'n'roll 'tis", "3.14159 1,000,000 2026-11-24 x86_64",
         "½ ² Ⅷ ٣ 四 ④ 1²", "Straße naïve café", "e\u0301 cafe\u0301", "Привет, мир!", "こんにちは世界", "你好，世界！", "مرحبا بالعالم", "नमस्ते दुनिया", "안녕하세요",
         "🎉👍🏽👨‍👩‍👧‍👦 🇩🇪", "zero\u200bwidth", "nbsp\u00a0\u00a0here \u00a0x", "em\u2003space\u2028line\u3000wide", "\x00\x01\x1c\x1f x\x7f", "\x85next\x0bvt\x0cff",
         "!!! ??? ...  -- ==> {}[]()", "if (x<3) { y = f(a, b); } // end", "https://example.org/a?b=c&d=%20", "<|endoftext|>", "a<|endoftext|>b", "\U0001d400\U0001d7d8 \U00020000",
         "\u1680\u180e\u2000", "\ufeffbom", "\uffff\U0010ffff", "a" * 200, "ab" * 100, " " * 70 + "x", "\n" * 33, "aA1!" * 40, "word " * 30,
         "".join(OTHERS), "the and that with which of a file, a rank, a step: the model's own"]

out = sys.argv[1]
trained = ByteLevelBPETokenizer()
files = sys.argv[2:] or ["README.md"] + sorted(glob.glob("docs/*.md"))
texts = [open(f, encoding="utf-8").read() for f in files] + [" ".join(OTHERS)] * 3
trained.train_from_iterator(texts, vocab_size=1000, min_frequency=2, show_progress=False, special_tokens=[])
trained.save_model(out)
vocab = json.load(open(f"{out}/vocab.json"))
vocab["<|endoftext|>"] = len(vocab)
with open(f"{out}/vocab.json", "w", encoding="utf-8") as f:
    json.dump(vocab, f, ensure_ascii=False)
ranks = ranks_of(vocab)
with open(f"{out}/ranks.tiktoken", "wb") as f:
    for token, number in sorted(ranks.items(), key=lambda r: r[1]):
        f.write(base64.b64encode(token) + b" %d\n" % number)
other = tiktoken.Encoding("small", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={"<|endoftext|>": len(ranks)})
with open(f"{out}/cases.txt", "w") as f:
    for text in CASES:
        a, b = trained.encode(text).ids, other.encode_ordinary(text)
        assert a == b, (text, a, b)
        f.write(f"{text.encode().hex() or '-'} {','.join(map(str, a)) or '-'}\n")
