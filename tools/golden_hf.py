#!/usr/bin/env python3
"""Small models of Hugging Face's transformers, their descriptions, and the losses that transformers gives for them.

usage: golden_hf.py DIRECTORY     writes there (tests/golden/hf): KIN.safetensors, one for each set of tensors, CASE.json, the
                                  description of a case, and losses.txt: CASE KIN CONTEXT LOSS, in double precision

Weights are random, stored as 16-bit floats, and large enough that every angle counts. Tokens are the bytes of the numbers from 1
to 400, a line each; a sample is CONTEXT of them and the ones behind. The tests need neither Python nor transformers.
"""
import json
import os
import sys

import torch
import transformers
from safetensors.torch import save_file

CONTEXT = 96
SMALL = dict(vocab_size=256, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=2,
             num_key_value_heads=1, max_position_embeddings=128, rms_norm_eps=1e-5, tie_word_embeddings=True)
LLAMA3 = dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64)
YARN = dict(factor=4.0, original_max_position_embeddings=64)

CASES = [  # name, tensors, model_type, the description's own fields
    ("plain", "llama", "llama", {"rope_theta": 100.0, "rope_scaling": None}),
    ("theta", "llama", "llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}}),
    ("linear", "llama", "llama", {"rope_theta": 100.0, "rope_scaling": {"type": "linear", "factor": 4.0}}),
    ("dynamic", "llama", "llama", {"rope_theta": 100.0, "max_position_embeddings": 32,
                                   "rope_scaling": {"type": "dynamic", "factor": 2.0}}),
    ("dynamic_short", "llama", "llama", {"rope_theta": 100.0, "rope_scaling": {"type": "dynamic", "factor": 2.0}}),
    ("llama3", "llama", "llama", {"rope_theta": 100.0, "rope_scaling": {"rope_type": "llama3", **LLAMA3}}),
    ("llama3_new", "llama", "llama", {"rope_parameters": {"rope_type": "llama3", "rope_theta": 1000.0, **LLAMA3}}),
    ("yarn", "llama", "llama", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 100.0, **YARN}}),
    ("yarn_bounds", "llama", "llama", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 100.0, "beta_fast": 8.0,
                                                           "beta_slow": 2.0, "truncate": False, "mscale": 1.0,
                                                           "mscale_all_dim": 0.5, **YARN}}),
    ("yarn_factor", "llama", "llama", {"rope_parameters": {"rope_type": "yarn", "rope_theta": 100.0,
                                                           "attention_factor": 1.5, **YARN}}),
    ("window", "llama", "mistral", {"rope_theta": 100.0, "sliding_window": 20}),
    ("window_tiles", "llama", "mistral", {"rope_theta": 100.0, "sliding_window": 70}),
    ("window_none", "llama", "mistral", {"rope_theta": 100.0, "sliding_window": None}),
    ("qwen2", "qwen2", "qwen2", {"rope_theta": 100.0, "use_sliding_window": False, "sliding_window": 20}),
    ("qwen2_window", "qwen2", "qwen2", {"rope_theta": 100.0, "use_sliding_window": True, "sliding_window": 20,
                                        "max_window_layers": 1}),
    ("qwen2_layers", "qwen2", "qwen2", {"rope_theta": 100.0, "use_sliding_window": True, "sliding_window": 20,
                                        "layer_types": ["full_attention", "sliding_attention"]}),
    ("gpt2", "gpt2", "gpt2", {}),
]
CLASSES = {"llama": ("LlamaForCausalLM", "LlamaConfig"), "mistral": ("MistralForCausalLM", "MistralConfig"),
           "qwen2": ("Qwen2ForCausalLM", "Qwen2Config"), "gpt2": ("GPT2LMHeadModel", "GPT2Config")}
GPT2 = dict(vocab_size=256, n_embd=16, n_layer=2, n_head=4, n_positions=96, tie_word_embeddings=True)


def describe(kind, own):
    fields = dict(GPT2 if kind == "gpt2" else SMALL)
    fields.update(own)
    return {"architectures": [CLASSES[kind][0]], "model_type": kind, "torch_dtype": "float16", "use_cache": True, **fields}


def make(kind, description):
    config = getattr(transformers, CLASSES[kind][1])(**json.loads(json.dumps(description)))
    config._attn_implementation = "eager"
    return getattr(transformers, CLASSES[kind][0])(config).double().eval()


def weights(model, seed):
    noise = torch.Generator().manual_seed(seed)
    state = {}
    for name, p in model.state_dict().items():
        v = torch.randn(p.shape, generator=noise, dtype=torch.float64)
        if "norm" in name or "ln_" in name:
            v = 0.2 * v + (1 if name.endswith("weight") else 0)
        else:
            v = v * (0.6 if p.dim() > 1 else 0.4)
        state[name] = v.half()
    head = "wte" if "transformer.wte.weight" in state else "embed_tokens"
    for name in state:
        if name == "lm_head.weight":
            state[name] = state[[n for n in state if head in n][0]].clone()
    return state


def loss(model, tokens):
    count = (len(tokens) - 1) // CONTEXT
    x = torch.stack([tokens[i * CONTEXT:(i + 1) * CONTEXT] for i in range(count)])
    y = torch.stack([tokens[i * CONTEXT + 1:(i + 1) * CONTEXT + 1] for i in range(count)])
    with torch.no_grad():
        logits = model(x).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten()).item()


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    tokens = torch.tensor(list("".join(f"{i}\n" for i in range(1, 401)).encode()))
    stored = {}
    with open(f"{out}/losses.txt", "w") as losses:
        losses.write(f"# Written by tools/golden_hf.py with transformers {transformers.__version__}: CASE TENSORS CONTEXT LOSS\n")
        for name, kin, kind, own in CASES:
            description = describe(kind, own)
            model = make(kind, description)
            if kin not in stored:
                stored[kin] = weights(model, len(stored))
                save_file(stored[kin], f"{out}/{kin}.safetensors", {"format": "pt"})
            model.load_state_dict({k: v.double() for k, v in stored[kin].items()})
            with open(f"{out}/{name}.json", "w") as file:
                json.dump(description, file, indent=1)
                file.write("\n")
            losses.write(f"{name} {kin} {CONTEXT} {loss(model, tokens):.10g}\n")


main()
