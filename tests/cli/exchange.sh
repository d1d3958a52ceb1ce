#!/usr/bin/env bash
# Export of parameters for other programs, and import from them: a file that is exported and imported again is the same, in the names
# and layouts of each family; a run can begin with it; other files are refused, and no file is lost.
# usage: exchange.sh     (WEFT=build/weft)
pictures=$PWD/tests/image/pictures
golden=$PWD/tests/golden/pth
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
seq 1 3001 >text
check 0 '' "$WEFT" data import text text -o text.h5 --test text-test.h5
job() { # NAME MODEL
    printf 'run: {name: %s}\nmodel: %s\ndata: {train: text.h5, test: text-test.h5}\ntrain: {steps: 3, batch: 8, micro_batch: 4, threads: 1}\noptim: {name: adam, lr: 0.01}\n' "$1" "$2" >"$1.yaml"
    check 0 '' "$WEFT" train "$1.yaml"
}
# there_and_back NAME FAMILY: the imported file is exported to the same file again, and evaluates to the same loss.
there_and_back() {
    local run=runs/$1/checkpoints/step-00000003.h5
    check 0 "names and layouts of $2" "$WEFT" ckpt export "$run" -o "$1.safetensors"
    check 0 "names and layouts of $2" "$WEFT" ckpt import "$1.safetensors" -o "$1-back.h5"
    check 0 '' "$WEFT" ckpt export "$1-back.h5" -o "$1-again.safetensors"
    holds "$1: the same values" sh -c "$WEFT ckpt info $run | grep -E '/(params|buffers)/' >a; $WEFT ckpt info $1-back.h5 | grep /params >b; $WEFT ckpt info $1-back.h5 | grep /buffers | cat - b | sort >c; sort a | cmp - c"
    check 0 "began with $1.safetensors" "$WEFT" ckpt info "$1-back.h5"
    check 0 '"eval_loss"' "$WEFT" eval "$1.yaml" --json --checkpoint "$run"
    grep -o '"eval_loss": [^,]*' out >first
    check 0 "$(cat first)" "$WEFT" eval "$1.yaml" --json --checkpoint "$1-back.h5"
    check 0 'beginning with' "$WEFT" train "$1.yaml" run.name="$1-begun" model.init_from="$1-back.h5" train.steps=1
}
named() { holds "$1: $2" grep -qaF "\"$2\":{\"dtype\":\"F32\",\"shape\":[$3]" "$1.safetensors"; }

job gpt '{name: gpt2, layers: 2, width: 32, heads: 2, context: 32}'
there_and_back gpt "Hugging Face's GPT-2"
named gpt transformer.h.1.attn.c_attn.weight 32,96
named gpt transformer.wte.weight 256,32
holds 'gpt: the same file' cmp gpt.safetensors gpt-again.safetensors
job llama '{name: llama, layers: 2, width: 32, heads: 4, kv_heads: 2, ffn: 64, context: 32}'
there_and_back llama "Hugging Face's Llama"
named llama model.layers.1.self_attn.k_proj.weight 16,32
named llama model.layers.0.mlp.up_proj.weight 64,32
named llama lm_head.weight 256,32
holds 'llama: the same file' cmp llama.safetensors llama-again.safetensors
# Two of four ranks share each head of keys.
check 0 'beginning with' "$WEFT" train -n 4 llama.yaml run.name=llama-four grid.tp=4 model.init_from=llama-back.h5 train.steps=1
for name in begun four; do check 0 'wrote' "$WEFT" ckpt export runs/llama-$name/checkpoints/step-00000001.h5 -o $name.safetensors; done
holds 'llama: the same parameters on four ranks' cmp begun.safetensors four.safetensors

noise_idx 64 8 10 images.h5
cat >net.yaml <<'YAML'
model: {layers: [conv2d: {channels: 8, kernel: 3}, batch_norm, relu, flatten, dense: {width: 10}]}
data:  {train: images.h5, test: images.h5}
train: {steps: 3, batch: 16, micro_batch: 4, threads: 1}
optim: {lr: 0.1, momentum: 0.9}
YAML
check 0 '' "$WEFT" train net.yaml
there_and_back net "torchvision's models"
named net batch_norm1.running_var 8
holds 'PyTorch counts batches' grep -qa '"batch_norm1.num_batches_tracked":{"dtype":"I64","shape":\[\]' net.safetensors
# the bytes of the file: 8 for the header's length, the header, the values
at=$(grep -ao '"batch_norm1.num_batches_tracked":{[^}]*"data_offsets":\[[0-9]*' net.safetensors | grep -o '[0-9]*$')
holds 'three of them' test "$(od -An -td8 -j $((8 + $(od -An -td8 -N8 net.safetensors) + at)) -N8 net.safetensors | tr -d ' ')" = 3
sed 's|batch_norm1[.]weight|batch_norm1/weight|' net.safetensors >slash.safetensors
check 65 "batch_norm1/weight (F32 8) has a name that is none in a checkpoint" "$WEFT" ckpt import slash.safetensors -o slash.h5
sed 's|batch_norm1[.]weight|bat\\u001bm1.weight|' net.safetensors >escape.safetensors
check 65 'bat\u001bm1.weight (F32 8) has a name that is none in a checkpoint' "$WEFT" ckpt import escape.safetensors -o escape.h5
# Characters that a terminal would obey are escaped where the file's names are printed.
sed 's|batch_norm1[.]weight|bab\\u009bm1.weight|' net.safetensors >control.safetensors
check 0 '' "$WEFT" ckpt import control.safetensors -o control.h5
check 0 '/params/bab\u009bm1.weight ' "$WEFT" ckpt info control.h5
check 65 'tensor /params/bab\u009bm1.weight is only in control.h5' "$WEFT" ckpt diff control.h5 net-back.h5

# Export as ONNX, from a checkpoint of a run, and from an imported checkpoint with the information that it lacks.
run=runs/net/checkpoints/step-00000003.h5
check 0 'wrote net.onnx: ONNX opset 17, 5 nodes, 10 classes' "$WEFT" ckpt export $run --onnx -o net.onnx
holds 'the deviation is in the metadata' grep -qa scale net.onnx
check 0 '11 nodes' "$WEFT" ckpt export $run --onnx -o net-all.onnx --softmax --normalize data.mean=[0.5] data.std=[0.25]
cp images.h5 kept-images.h5
check 64 'images.h5: is one of the files that are read' "$WEFT" ckpt export $run --onnx -o images.h5 --force
check 64 'images.h5: is one of the files that are read' "$WEFT" ckpt shrink $run --method l1 --sparsity .5 -o images.h5 --force
holds 'the data set is as before' cmp images.h5 kept-images.h5
holds 'its output are probabilities' grep -qa probabilities net-all.onnx
check 78 'holds no configuration' "$WEFT" ckpt export net-back.h5 --onnx -o net-back.onnx
check 0 '5 nodes, 10 classes' "$WEFT" ckpt export net-back.h5 --onnx -o net-back.onnx --config net.yaml --input 1x8x8
check 0 '256 tokens' "$WEFT" ckpt export gpt-back.h5 --onnx -o gpt.onnx --config gpt.yaml
check 0 '256 tokens' "$WEFT" ckpt export gpt-back.h5 --onnx -o gpt-input.onnx --config gpt.yaml --input tokens data.train=none.h5
holds 'the data set tells no more than --input' cmp gpt.onnx gpt-input.onnx
check 64 'the data set none.h5 is needed for the shape of a sample' "$WEFT" ckpt export $run --onnx -o no.onnx data.train=none.h5
check 64 'none.h5: no such file' "$WEFT" ckpt export $run --onnx -o no.onnx data.train=[images.h5,none.h5]
cp images.h5 more.h5
check 0 '5 nodes, 10 classes' "$WEFT" ckpt export $run --onnx -o net-list.onnx data.train=[images.h5,more.h5]
holds 'a list of files tells as much as one' cmp net.onnx net-list.onnx
if needs_pictures 'pictures of many sizes'; then
    mkdir -p photos/cat photos/dog
    cp "$pictures"/plain.png photos/cat
    cp "$pictures"/alpha.png photos/dog
    check 0 '' "$WEFT" data import folder photos -o photos.h5 --store encoded
    check 78 'pictures of many sizes' "$WEFT" ckpt export $run --onnx -o no.onnx data.train=photos.h5
fi
check 64 'net.onnx: is already there' "$WEFT" ckpt export $run --onnx -o net.onnx
cp net.onnx old.onnx
touch old.onnx.data
check 0 'removed old.onnx.data' "$WEFT" ckpt export $run --onnx -o old.onnx --force
holds 'values of an older export do not stay' test ! -e old.onnx.data
check 64 'has an effect only with --onnx' "$WEFT" ckpt export $run -o no.safetensors data.train=none.h5
check 64 '--softmax' "$WEFT" ckpt export $run -o no.safetensors --softmax
check 65 'missing in the file: ' "$WEFT" ckpt export net-back.h5 --onnx -o no.onnx --config gpt.yaml
check 78 'tokens have no mean' "$WEFT" ckpt export gpt-back.h5 --onnx -o no.onnx --config gpt.yaml --normalize
holds 'nothing is left of them' test ! -e no.onnx -a ! -e no.onnx.part

# Files of torch.save give the same checkpoint as safetensors with the same tensors, whatever else they contain.
check 0 '' "$WEFT" ckpt import "$golden/net.safetensors" -o golden.h5
tensors() { "$WEFT" ckpt info "$1" | grep -E '/(params|buffers)/'; }
tensors golden.h5 >golden
imported() { # FILE TEXT: the file's import says TEXT and has the golden tensors
    rm -f pth.h5
    check 0 "$2" "$WEFT" ckpt import "$1" -o pth.h5
    holds "$1: the golden values" cmp golden <(tensors pth.h5)
}
imported "$golden/net.pth" ''
imported "$golden/ddp.pth" "left out 'module.', with which every name begins"
imported "$golden/compiled.pth" "left out 'module._orig_mod.', with which every name begins"
first=$(sed -n 's/.*\/params\/\([a-z0-9]*\)\..*/\1/p' golden | sort -u | head -n 1)
rm -f pth.h5
check 0 "removed 'module._orig_mod.' and similar prefixes, with which" "$WEFT" ckpt import "$golden/net.pth" -o pth.h5 --rename "$first.:module._orig_mod.$first."
holds 'a prefix on some names: the golden values' cmp golden <(tensors pth.h5)
gzip -c "$golden/net.pth" >net.pth.gz
check 65 'net.pth.gz: is packed by gzip, and is not unpacked by weft: run `gunzip -k` on it' "$WEFT" ckpt import net.pth.gz -o none.h5
imported "$golden/nested.pth" "took 'model' (9 tensors); other choices of --key: ema (9 tensors)"
check 65 'choose one with --key: generator (9 tensors), discriminator (9 tensors)' "$WEFT" ckpt import "$golden/two.pth" -o none.h5
check 64 'there is no such group of tensors; there are generator' "$WEFT" ckpt import "$golden/two.pth" -o none.h5 --key gen
check 0 "took 'generator'" "$WEFT" ckpt import "$golden/two.pth" -o generator.h5 --key generator
holds 'the generator is the golden net' cmp golden <(tensors generator.h5)
check 64 '--key ema: a safetensors file has no groups' "$WEFT" ckpt import net.safetensors -o none.h5 --key ema
cp "$golden/plain.pth" pytorch_model-00001-of-00002.bin
cp "$golden/parameters.pth" pytorch_model-00002-of-00002.bin
echo '{"metadata":{"total_size":1},"weight_map":{"a":"pytorch_model-00001-of-00002.bin","b":"pytorch_model-00001-of-00002.bin","embed":"pytorch_model-00002-of-00002.bin","head":"pytorch_model-00002-of-00002.bin","frozen":"pytorch_model-00002-of-00002.bin"}}' >pytorch_model.bin.index.json
check 0 '24 parameters' "$WEFT" ckpt import pytorch_model.bin.index.json -o shards.h5
shard=pytorch_model-00002-of-00002.bin
cp $shard shard
cp shards.h5 kept.h5
check 64 "$shard: is one of the files that are read" "$WEFT" ckpt import pytorch_model.bin.index.json -o $shard --force
check 64 'shards.h5: is one of the files that are read' "$WEFT" ckpt export shards.h5 -o ./shards.h5 --force
check 64 'shards.h5: is one of the files that are read' "$WEFT" ckpt shrink shards.h5 --method l1 --sparsity .5 -o shards.h5 --force
holds 'no input is written over' sh -c "cmp shard $shard && cmp kept.h5 shards.h5"
check 65 'it names posix.system, which tensors do not need and weft does not run' "$WEFT" ckpt import "$golden/evil.pth" -o none.h5
check 65 "torch.load('$golden/old.pth'" "$WEFT" ckpt import "$golden/old.pth" -o none.h5
check 65 'tensor count (I64 3) is not of floats' "$WEFT" ckpt import "$golden/whole.pth" -o none.h5
check 65 'so not a checkpoint (it holds another program'\''s tensors; convert it with `weft ckpt import`)' "$WEFT" ckpt info "$golden/net.pth"
check 65 'convert it with `weft ckpt import`' "$WEFT" train net.yaml run.name=no model.init_from="$golden/net.safetensors"
check 65 'or its beginning is damaged' "$WEFT" ckpt info text
mkfifo pipe.pth
check 66 'not a plain file' timeout 20 "$WEFT" ckpt import pipe.pth -o none.h5
# Any prefix is removed if names of a known model follow it; a safetensors header keeps its length.
job tied '{name: llama, layers: 2, width: 32, heads: 4, kv_heads: 2, ffn: 64, context: 32, tied: true}'
check 0 '' "$WEFT" ckpt export runs/tied/checkpoints/step-00000003.h5 -o tied.safetensors
LC_ALL=C sed 's/"model\./"tutor./g' tied.safetensors >tutor.safetensors
check 0 "left out 'tutor.', with which every name begins" "$WEFT" ckpt import tutor.safetensors -o tutor.h5
holds 'the same tensors as in the run' cmp <(tensors tutor.h5) <(tensors runs/tied/checkpoints/step-00000003.h5)

check 64 'net-back.h5: is already there' "$WEFT" ckpt import net.safetensors -o net-back.h5
check 64 'gpt.safetensors: is already there' "$WEFT" ckpt export net-back.h5 -o gpt.safetensors
cp net-back.h5 kept
for bytes in 0 7 40 900; do
    head -c $bytes net.safetensors >cut.safetensors
    check 65 'cut.safetensors' "$WEFT" ckpt import cut.safetensors -o net-back.h5 --force
done
holds 'what was there stays' cmp kept net-back.h5
check 66 'none.safetensors' "$WEFT" ckpt import none.safetensors -o none.h5
check 65 'is not a safetensors file' "$WEFT" ckpt import net-back.h5 -o none.h5
echo '{"metadata":{"total_size":1},"weight_map":{"a":"../net.safetensors"}}' >index.json
check 65 'no plain name of a shard' "$WEFT" ckpt import index.json -o none.h5
echo '{"metadata":{"total_size":1},"weight_map":{"a":"net.safetensors"}}' >index.json
check 65 'names 1 tensors, its shards hold 9' "$WEFT" ckpt import index.json -o none.h5
check 65 'does not fit this model' "$WEFT" train net.yaml run.name=no model.init_from=gpt-back.h5
check 74 'cannot be written' "$WEFT" ckpt export net-back.h5 -o nowhere/x.safetensors
holds 'nothing is left of them' test ! -e none.h5 -a -z "$(find . -name '*.part')"
finish
