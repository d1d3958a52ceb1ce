"""How GPT-2 cuts texts into words and writes bytes as characters: for golden_tokenizer.py and check_tokenizer.py."""
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def ranks_of(vocab):
    """vocab.json's {token: number} -> {bytes: number}, without <|endoftext|>."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    byte = {chr(b): b for b in visible}
    byte.update({chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in visible)})
    return {bytes(byte[c] for c in token): number for token, number in vocab.items() if token != "<|endoftext|>"}
