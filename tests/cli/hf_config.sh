#!/usr/bin/env bash
# Models of Hugging Face are described by config.json: the loss of each case equals that of transformers (tools/golden_hf.py),
# unsupported features are refused by name, and so are tensors of another model.
# usage: hf_config.sh     (WEFT=build/weft)
golden=$PWD/tests/golden/hf
. "$(dirname "$0")/common.bash"
seq 1 400 >text
check 0 '' "$WEFT" data import text text -o text.h5
# near A B: two losses are equal to 1e-5.
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a != "" && b != "" && d < 1e-5 * b && -d < 1e-5 * b) }'; }
loss() { sed -n 's/.*"eval_loss": \([^,]*\),.*/\1/p' out; }
# config CONTEXT: writes a CONFIG with the lines of `model:` that the import has printed.
config() {
    grep -v '^  context:' model
    printf '  context: %s\ndata: {train: text.h5, test: text.h5}\ntrain: {steps: 2, batch: 4, micro_batch: 2, threads: 1}\noptim: {name: adam, lr: 0.001}\n' "$1"
}

while read -r name kin context want; do
    [ "$name" = '#' ] && continue
    mkdir "$name"
    cp "$golden/$kin.safetensors" "$name/model.safetensors"
    cp "$golden/$name.json" "$name/config.json"
    check 0 'parameters, names and layouts of Hugging Face' "$WEFT" ckpt import "$name/model.safetensors" -o "$name.h5"
    cp out model
    config "$context" >"$name.yaml"
    check 0 '"eval_loss"' "$WEFT" eval "$name.yaml" --checkpoint "$name.h5" --json
    holds "$name: transformers has $want, weft $(loss)" near "$(loss)" "$want"
    check 0 'wrote' "$WEFT" ckpt export "$name.h5" --onnx -o "$name.onnx" --input tokens model.context="$context"
    check 0 'wrote' "$WEFT" ckpt export "$name.h5" -o "$name.safetensors"
    holds "$name: what goes out is what came in" test "$(wc -c <"$name.safetensors")" -gt 10000
done <"$golden/losses.txt"

# Training and generation work with scaled angles, windows and biases, with the same bits on every grid.
for name in yarn window qwen2_window; do
    check 0 '' "$WEFT" train "$name.yaml" run.name="$name" model.init_from="$name.h5"
    for grid in "grid.dp=2" "grid.pp=2"; do
        check 0 '' "$WEFT" train -n 2 "$name.yaml" run.name="$name-$grid" $grid model.init_from="$name.h5"
        check 0 'to the bit' "$WEFT" ckpt diff "$(at "$name" 2)" "$(at "$name-$grid" 2)"
    done
    check 0 '' "$WEFT" generate "$name.yaml" --checkpoint "$name.h5" --prompt 12 --tokens 4
done

# Unsupported features of a description are refused by name, and nothing is written. refused TEXT SED: changes plain's description by
# SED.
refused() {
    sed "$2" "$golden/plain.json" >plain/other.json
    check 65 "$1" "$WEFT" ckpt import plain/model.safetensors -o no.h5 --hf-config plain/other.json
}
refused 'hidden_act is gelu' 's/^ "use_cache": true,/ "hidden_act": "gelu",/'
refused 'attention_bias is true' 's/^ "use_cache": true,/ "attention_bias": true,/'
refused 'mlp_bias is true' 's/^ "use_cache": true,/ "mlp_bias": true,/'
refused 'head_dim is 16' 's/^ "use_cache": true,/ "head_dim": 16,/'
refused 'sliding_window is 20' 's/^ "use_cache": true,/ "sliding_window": 20,/'
refused 'quantization_config is {...}' 's/^ "use_cache": true,/ "quantization_config": {"bits": 4},/'
refused 'attn_logit_softcapping is 50.0' 's/^ "use_cache": true,/ "attn_logit_softcapping": 50.0,/'
refused 'partial_rotary_factor is 0.5' 's/^ "use_cache": true,/ "partial_rotary_factor": 0.5,/'
refused 'model_type is gemma' 's/"model_type": "llama"/"model_type": "gemma"/'
refused 'architectures is LlamaForSequenceClassification' 's/LlamaForCausalLM/LlamaForSequenceClassification/'
refused 'rope_scaling.rope_type is longrope' 's/"rope_scaling": null/"rope_scaling": {"rope_type": "longrope", "factor": 2}/'
refused 'llama3 needs factor' 's/"rope_scaling": null/"rope_scaling": {"rope_type": "llama3"}/'
refused 'rope_scaling.sliding_attention is {...}' 's/"rope_scaling": null/"rope_scaling": {"sliding_attention": {"rope_theta": 1}}/'
# The old name of rope_type and the new one agree.
scaled=$(sed 's/"type": "linear"/"type": "linear", "rope_type": "linear"/' linear/config.json)
check 0 'rope_scaling: {rope_type: linear, factor: 4' "$WEFT" ckpt import linear/model.safetensors -o both.h5 --hf-config <(printf %s "$scaled")
holds 'neither name is unknown' test "$(grep -c 'not known' both)" = 0
refused 'rope_scaling.type is dynamic: rope_scaling.rope_type is linear' 's/"rope_scaling": null/"rope_scaling": {"rope_type": "linear", "type": "dynamic", "factor": 2}/'
# A window of 0 tokens is no window, like null, and so is an unused one.
same_model() { # TEXT CASE SED: the changed description gives the same model as plain
    sed "$3" "$golden/$2.json" >plain/other.json
    check 0 "$1" "$WEFT" ckpt import "$2/model.safetensors" -o same.h5 --force --hf-config plain/other.json
    holds "$2 and $3: the same model as without" sh -c "grep -v 'these lines' out | grep -v 'wrote' >said; grep -v 'these lines' $2.model | grep -v wrote | diff - said"
}
"$WEFT" ckpt import plain/model.safetensors -o same.h5 >plain.model
"$WEFT" ckpt import window_none/model.safetensors -o same.h5 --force >window_none.model
"$WEFT" ckpt import qwen2/model.safetensors -o same.h5 --force >qwen2.model
same_model 'wrote' plain 's/^ "use_cache": true,/ "sliding_window": 0,/'
same_model 'wrote' plain 's/^ "use_cache": true,/ "sliding_window": 4096, "use_sliding_window": false,/'
same_model 'sliding_window is 0, which stands for no window' window_none 's/"sliding_window": null/"sliding_window": 0/'
same_model 'wrote' window_none 's/"sliding_window": null/"sliding_window": 0, "use_sliding_window": false/'
same_model 'wrote' qwen2 's/"sliding_window": 20/"sliding_window": 0/'
same_model 'wrote' plain "$(printf '1s/^/\xef\xbb\xbf/')"
refused 'use_sliding_window is true: llama has no window' 's/^ "use_cache": true,/ "use_sliding_window": true,/'
check 65 'use_sliding_window is false: mistral has the window of sliding_window' "$WEFT" ckpt import window/model.safetensors -o no.h5 --hf-config <(sed 's/"sliding_window": 20/"use_sliding_window": false/' window/config.json)
check 65 'is UTF-16: save it as UTF-8' "$WEFT" ckpt import plain/model.safetensors -o no.h5 --hf-config <(printf '\xff\xfe{\0')
# Values of a wrong kind are named together with the expected kind.
while IFS='|' read -r field text; do
    refused "$text" "s/^ \"use_cache\": true,/ $field,/"
done <<'KINDS'
"attention_bias": "false"|attention_bias is "false", a text: expected true or false
"attention_bias": 0|attention_bias is 0, a number: expected true or false
"attention_bias": [false]|attention_bias is [false], a list: expected true or false
"attention_bias": {}|attention_bias is {}, an object: expected true or false
"use_sliding_window": "true"|use_sliding_window is "true", a text: expected true or false
"hidden_act": ["silu"]|hidden_act is [silu], a list: expected a text
"hidden_act": true|hidden_act is true, a truth value: expected a text
"sliding_window": "0"|sliding_window is "0", a text: expected a number
"partial_rotary_factor": "1"|partial_rotary_factor is "1", a text: expected a number
"layer_types": "full_attention"|layer_types is "full_attention", a text: expected a list
KINDS
refused 'tie_word_embeddings is "true", a text: expected true or false' 's/"tie_word_embeddings": true/"tie_word_embeddings": "true"/'
refused 'hidden_size is "16", a text: expected a number' 's/"hidden_size": 16/"hidden_size": "16"/'
refused 'model_type is [llama], a list: expected a text' 's/"model_type": "llama"/"model_type": ["llama"]/'
for kind in '"rope_type": ["linear"]=rope_type is [linear], a list: expected a text' '"rope_type": "yarn", "factor": true=factor is true, a truth value: expected a number' \
    '"rope_type": "yarn", "factor": 2, "truncate": "false"=truncate is "false", a text: expected true or false'; do
    refused "rope_scaling.${kind##*=}" "s/\"rope_scaling\": null/\"rope_scaling\": {${kind%=*}}/"
done
refused 'appears twice' 's/^ "use_cache": true,/ "rope_theta": 10, "rope_theta": 10,/'
refused 'rope_scaling.factor appears twice' 's/"rope_scaling": null/"rope_scaling": {"rope_type": "linear", "factor": 2, "factor": 4}/'
refused 'the name rope_scaling.factor has a dot' 's/^ "use_cache": true,/ "rope_scaling.factor": 2,/'
refused 'byte ' 's/^ "use_cache": true,/ "use_cache": true/'
refused 'its 3 heads do not divide' 's/"num_attention_heads": 2/"num_attention_heads": 3/'
refused 'of another size: ' 's/"hidden_size": 16/"hidden_size": 32/'
refused 'missing in the file: ' 's/"num_hidden_layers": 2/"num_hidden_layers": 3/'
refused 'not in this model: layers.1.' 's/"num_hidden_layers": 2/"num_hidden_layers": 1/'
refused 'qkv_proj.weight (32x16 in the file, 48x16 in the model)' 's/"num_key_value_heads": 1/"num_key_value_heads": 2/'
refused 'vocab' 's/"vocab_size": 256/"vocab_size": 0/'
holds 'nothing is written' test ! -e no.h5
check 65 'but the tensors have the names of' "$WEFT" ckpt import gpt2/model.safetensors -o no.h5 --hf-config plain/config.json
check 65 'not in this model: layers.0.self_attn.qkv_proj.bias' "$WEFT" ckpt import qwen2/model.safetensors -o no.h5 --hf-config plain/config.json
check 65 'layer_types is sliding_attention,full_attention' "$WEFT" ckpt import qwen2/model.safetensors -o no.h5 --hf-config <(sed 's/full_attention/x/; s/sliding_attention/full_attention/; s/"x"/"sliding_attention"/' qwen2_layers/config.json)
check 66 'none.json' "$WEFT" ckpt import plain/model.safetensors -o no.h5 --hf-config none.json
for own in 's/"n_head": 4/"n_head": 4, "n_inner": 32/=n_inner is 32' 's/"n_head": 4/"n_head": 4, "layer_norm_epsilon": 1e-6/=layer_norm_epsilon is 1e-6' \
    's/"n_head": 4/"n_head": 4, "scale_attn_by_inverse_layer_idx": true/=scale_attn_by_inverse_layer_idx is true' \
    's/"n_head": 4/"n_head": 4, "activation_function": "gelu"/=activation_function is gelu' 's/"n_positions": 96/"n_positions": 64/=wpe.weight (96x16 in the file, 64x16 in the model)'; do
    sed "${own%=*}" gpt2/config.json >gpt2/other.json
    check 65 "${own##*=}" "$WEFT" ckpt import gpt2/model.safetensors -o no.h5 --hf-config gpt2/other.json
done

# Unknown fields are named; known fields without an effect are not.
sed 's/^ "use_cache": true,/ "use_cache": true, "rope_scaling_x": 1, "colour": "blue", "bos_token_id": 1,/' plain/config.json >plain/other.json
check 0 'taken to change nothing: rope_scaling_x, colour' "$WEFT" ckpt import plain/model.safetensors -o named.h5 --hf-config plain/other.json
holds 'nothing else is named' test "$(grep -c bos_token_id both)" = 0
check 0 'its folder has no config.json' "$WEFT" ckpt import qwen2.safetensors -o bare.h5

# Evaluations with other heads, angles, windows or eps than in the description: the shapes are the same, the loss is not.
differs() { # CASE TEXT WORDS...
    check 65 "$2" "$WEFT" eval "$1.yaml" --checkpoint "$1.h5" "${@:3}"
}
differs plain 'rotary_base of layers.0.self_attn is 10000 in this model and 100 in the checkpoint' model.rotary_base=10000
differs plain 'eps of layers.0.input_layernorm is' model.rms_eps=1e-6
differs window 'window of layers.0.self_attn is 0 in this model and 20 in the checkpoint' model.window=0
differs llama3 'rope_type of layers.0.self_attn is default in this model and llama3 in the checkpoint' 'model.rope_scaling={}'
differs gpt2 'heads of h.0.attn is 2 in this model and 4 in the checkpoint' model.heads=2
check 65 'heads of h.0.attn is 2 in this model and 4 in the checkpoint' "$WEFT" ckpt export gpt2.h5 --onnx -o no.onnx --config gpt2.yaml model.heads=2
check 65 'heads of h.0.attn is 2 in this model and 4 in the checkpoint' "$WEFT" ckpt shrink gpt2.h5 --method l1 --sparsity .5 -o no.h5 --config gpt2.yaml model.heads=2
check 65 'heads of h.0.attn is 2 in this model and 4 in the checkpoint' "$WEFT" generate gpt2.yaml --checkpoint gpt2.h5 --prompt 1 --tokens 2 model.heads=2
check 0 'heads of h.1.attn is 2 in this model and 4 in the checkpoint; training continues with the model as it is here' "$WEFT" train gpt2.yaml run.name=other model.init_from=gpt2.h5 model.heads=2
holds 'nothing is written' test ! -e no.onnx -a ! -e no.h5

# Windows, biases and scaling give the same bits on every grid, also if heads are split.
cat >grids.yaml <<'YAML'
model: {name: llama, layers: 2, width: 32, heads: 4, kv_heads: 2, ffn: 48, context: 96, window: 20, window_from: 1, qkv_bias: true,
        rope_scaling: {rope_type: yarn, factor: 4, original_max_position_embeddings: 32}}
data: {train: text.h5, test: text.h5}
train: {steps: 2, batch: 4, micro_batch: 2, threads: 1}
YAML
check 0 'the same to the bit' "$WEFT" verify grids.yaml --grids 1x1x1,2x1x1,1x2x1,1x1x2,1x1x4
check 78 'model.window_from needs model.window' "$WEFT" plan grids.yaml --input tokens model.vocab=256 model.window=0

# Names with prefixes, and buffers of integers, in a file of two tensors that the test writes.
tensors() { # HEADER BYTES: writes a safetensors file with this header and the given number of zeros
    local n=${#1} i
    for i in 0 8 16 24 32 40 48 56; do printf "\\x$(printf %02x $((n >> i & 255)))"; done
    printf %s "$1"
    head -c "$2" /dev/zero
}
tensors '{"net.fc.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"net.ids":{"dtype":"I64","shape":[2],"data_offsets":[24,40]}}' 40 >two.safetensors
check 65 'ids (I64 2) is not of floats that weft knows: F16, BF16, F32, F64; --drop leaves out' "$WEFT" ckpt import two.safetensors -o two.h5
check 65 "no tensor's name begins as --rename x:y says" "$WEFT" ckpt import two.safetensors -o two.h5 --rename x:y
check 65 '--drop buffers.*' "$WEFT" ckpt import two.safetensors -o two.h5 --drop 'buffers.*'
check 64 'expected OLD:NEW' "$WEFT" ckpt import two.safetensors -o two.h5 --rename net.
check 0 'wrote two.h5: 6 parameters' "$WEFT" ckpt import two.safetensors -o two.h5 --drop '*.ids' --rename net.:body.
check 0 '/params/body.fc.weight' "$WEFT" ckpt info two.h5
check 0 'wrote two.h5: 6 parameters' "$WEFT" ckpt import two.safetensors -o two.h5 --force --rename net.fc:head --rename net.ids:ids --drop ids

# A tied model whose file has a separate head, whose last bytes are equal to the embedding's or not.
bytes=$(wc -c <plain/model.safetensors)
at_head=$(head -c 4000 plain/model.safetensors | grep -ao '"lm_head.weight":{[^}]*"data_offsets":\[[0-9]*' | grep -o '[0-9]*$')
header=$(od -An -tu8 -N8 plain/model.safetensors | tr -d ' ')
cp plain/model.safetensors plain/other.safetensors
printf '\x01\x02' | dd of=plain/other.safetensors bs=1 seek=$((8 + header + at_head)) conv=notrunc 2>/dev/null
holds 'the head is within the file' test "$((8 + header + at_head))" -lt "$bytes"
check 65 'lm_head.weight (F16 256x16) is not the embedding again' "$WEFT" ckpt import plain/other.safetensors -o no.h5
sed 's/"tie_word_embeddings": true/"tie_word_embeddings": false/' plain/config.json >plain/untied.json
check 0 'wrote untied.h5' "$WEFT" ckpt import plain/other.safetensors -o untied.h5 --hf-config plain/untied.json
holds 'it has a head of its own' sh -c "$WEFT ckpt info untied.h5 | grep -q /params/lm_head.weight"
mkdir bare
cp plain/model.safetensors bare
check 0 'taken as tied (model.tied: true)' "$WEFT" ckpt import bare/model.safetensors -o bare-tied.h5
finish
