#!/usr/bin/env bash
# weft sbatch: the content of its scripts, quoting, and refusals; jobs/ contains its output; hosts.sh is run with mpirun on this
# machine, and receives a stop request at each point of its start. tests/cli/requeue.sh tests the scripts' behaviour without Slurm, and
# tests/cluster/slurm.sh with it.
root=$(cd "$(dirname "$0")/../.." && pwd)
. "$root/tests/cli/images.bash"
. "$root/tests/cli/common.bash"
export WEFT OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
make_images
sed -i 's/ threads: 1,//' images.yaml
mkdir -p jobs bin
check 0 '' "$root/tools/jobs.sh" "$WEFT" "$PWD"
holds 'jobs/ has one script for each kind' test "$(ls jobs | wc -l)" = 6
for file in jobs/*.sh "$root"/jobs/*.sh; do
    holds "$file is what weft sbatch writes" cmp "$file" "$root/jobs/${file##*/}"
    holds "bash reads $file" bash -n "$file"
done
# The one script that is written by hand has the functions of the others.
shared() { sed -n '/^job=/,/^# Newer versions of Slurm/p' "$root/jobs/slurm.sh" | sed '$d'; tail -n 3 "$root/jobs/slurm.sh"; }
holds 'slurm-servers.sh judges a start as slurm.sh does' test -z "$(diff <(shared) "$root/jobs/slurm-servers.sh" | grep '^<')"

says() { grep -qxF -- "$1" out; }
sbatch() { "$WEFT" sbatch images.yaml "$@"; }
check 78 'grid.servers=1: weft sbatch plans no servers: jobs/slurm-servers.sh' sbatch grid.servers=1
# By the grid.
check 0 '' sbatch --nodes 2 --ntasks-per-node 3 --time 36h --partition long --account a1 --more '--qos=high  --mail-type=END'
for line in --job-name=images --nodes=2 --ntasks-per-node=3 --cpus-per-task=1 --time=1-12:00:00 --partition=long --account=a1 --qos=high \
    --mail-type=END --requeue --open-mode=append --signal=USR1@120 --output=images-%j.log "--chdir=\"$PWD\""; do
    holds "it says $line" says "#SBATCH $line"
done
holds 'bash reads it' bash -n out
holds 'threads are said, so that no node decides how many' says 'defaults=(train.threads=1)'
check 0 '' sbatch grid.dp=4 grid.pp=2 --nodes 4
holds 'ranks follow from the grid' says '#SBATCH --ntasks-per-node=2'
check 0 '' sbatch grid.dp=4 grid.pp=2 --ntasks-per-node 4
holds 'and nodes from them' says '#SBATCH --nodes=2'
check 0 '' sbatch grid.pp=4 --nodes 2
holds 'the least that holds a replica' says '#SBATCH --ntasks-per-node=2'
check 0 '' sbatch train.threads=3
holds 'each thread has a core' says '#SBATCH --cpus-per-task=3'
holds 'and is said once' says 'defaults=(train.threads=3)'

# Memory: stages of different size on nodes of their own, by the plan of the same ranks.
# mem WORDS... : MiB that the script asks for; planned TASKS BYTES
mem() { sbatch "$@" | sed -n 's/^#SBATCH --mem=\([0-9]*\)M$/\1/p'; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(a > 0 && d <= 0.01 * a && -d <= 0.01 * a) }'; }
stages() { "$WEFT" plan images.yaml --ranks "$1" train.threads=1 "${@:2}" --json | grep -o '"bytes": [0-9]*' | cut -d' ' -f2; }
margin() { awk -v b="$1" -v n="$2" 'BEGIN { print (1.1 * b + n * 64e6 + 256e6) / 1048576 }'; }
large="model.name=mlp model.hidden=[4096,2048]"
read -r most a b _ <<<"$(echo $(stages 4 grid.pp=2 $large))"
holds "stages differ, $a and $b" test "$a" != "$b"
got=$(mem --nodes 2 --ntasks-per-node 2 grid.pp=2 $large)
holds "$got MiB for two ranks of the stage that needs $most" near "$got" "$(margin $((2 * most)) 2)"
got=$(mem --nodes 1 --ntasks-per-node 4 grid.pp=2 $large)
holds "$got MiB for both stages, $a and $b" near "$got" "$(margin $((2 * a + 2 * b)) 4)"
check 0 '' sbatch --mem 8G
holds 'unless it is said' says '#SBATCH --mem=8G'
for size in 0 4000 64000M 2t 8GB 640mb; do
    check 0 '' sbatch --mem $size
    holds "also as $size" says "#SBATCH --mem=$size"
done
for list in 0 1-8 3-3 1-8%2 0,3,7 0-9:3,20%4 1-4000000; do
    check 0 '' sbatch --array $list
    holds "an array of $list" says "#SBATCH --array=$list"
done
rm -f x.h5
check 66 'x.h5' sbatch data.train=x.h5
check 0 '' sbatch data.train=x.h5 --mem 8G

# Names that the shell, or sbatch, would read otherwise. srun says the words that it was given.
cat >bin/srun <<'SH'
#!/bin/sh
while [ "${1#--}" != "$1" ]; do shift; done
pwd >words
printf '[%s]\n' "$@" >>words
SH
printf '#!/bin/sh\n' >bin/scontrol
chmod +x bin/*
odd="it's \"a\" \$(touch owned) folder \`touch owned\`;#"
mkdir "$odd"
cp images.yaml "$odd/my 'own' config.yaml"
cd "$odd"
check 0 '' "$WEFT" sbatch "my 'own' config.yaml" "run.name=my %j \$HOME 'run'" data.train=../images.h5 -o "job 'one'.sh" train.steps=2
check 64 'already there' "$WEFT" sbatch "my 'own' config.yaml" "run.name=other" data.train=../images.h5 -o "job 'one'.sh"
holds 'a job has a plain name' grep -qx '#SBATCH --job-name=my__j__HOME__run_' "job 'one'.sh"
holds 'and its log' grep -qx '#SBATCH --output=my__j__HOME__run_-%j.log' "job 'one'.sh"
(cd / && env PATH="$dir/bin:$PATH" SLURM_JOB_ID=7 bash "$dir/$odd/job 'one'.sh" optim.lr=0.5) || true
cat >expected <<TEXT
$PWD
[$WEFT]
[train]
[my 'own' config.yaml]
[optim.lr=0.5]
[run.name=my %j \$HOME 'run']
[data.train=../images.h5]
[train.steps=2]
[train.threads=1]
TEXT
holds 'every word arrives as it was' cmp words expected
check 0 '' "$WEFT" sbatch "my 'own' config.yaml" "run.name=it's 'n" data.train=../images.h5 -o array.sh --array 1-3 --ntasks-per-node 2
holds 'an array has logs of its own' grep -qx '#SBATCH --output=it_s__n-%A_%a.log' array.sh
(env PATH="$dir/bin:$PATH" SLURM_JOB_ID=7 SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=2 bash array.sh) || true
holds 'and runs of its own' grep -qx "\[run.name=it's 'n-2\]" words
holds 'with seeds of their own' grep -qx '\[run.seed=2\]' words
holds 'nothing of a name was run' test ! -e owned -a ! -e ../owned
cd "$dir"

# A word behind the script's name replaces the word of the script that has the same key. submit SCRIPT WORDS... : under Slurm, as task 2
# of an array.
submit() { env PATH="$dir/bin:$PATH" SLURM_JOB_ID=7 SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=2 bash "$@"; }
check 0 '' sbatch optim.lr=0.1 "run.name=it's *" -o own.sh
check 0 '' submit own.sh
holds 'its own words' grep -qx "\[optim.lr=0.1\]" words
check 0 '' submit own.sh optim.lr=0.03 train.threads=2 optim.momentum=0.5
cat >expected <<TEXT
$PWD
[$WEFT]
[train]
[images.yaml]
[optim.lr=0.03]
[train.threads=2]
[optim.momentum=0.5]
[run.name=it's *]
TEXT
holds 'and others in their place' cmp words expected
check 78 'optim.lr is given twice' submit own.sh optim.lr=0.03 optim.lr=0.04
check 0 '' sbatch --chain 2 optim.lr=0.1 -o chain.sh
check 0 '' submit chain.sh optim.lr=0.03
holds 'in a chain, too' test "$(grep -c '^\[optim.lr=' words)$(grep -cx '\[optim.lr=0.03\]' words)" = 11
check 0 '' submit "$root/jobs/slurm-gpus.sh" images.yaml train.device=cpu
holds 'GPUs, too' test "$(grep '^\[train.device=' words)" = '[train.device=cpu]'
# Names of an array's runs: the one that is given, else the script's, else that of CONFIG's file.
check 0 '' sbatch --array 1-3 run.name=mine optim.lr=0.1 -o many.sh
name() { grep '^\[run.name=' words; }
check 0 '' submit many.sh optim.lr=0.03
holds 'the name of the script' test "$(name)" = '[run.name=mine-2]'
holds 'and another word' test "$(grep '^\[optim.lr=' words)" = '[optim.lr=0.03]'
check 0 '' submit many.sh "run.name=it's *"
holds 'the name that is given' test "$(name)" = "[run.name=it's *-2]"
check 0 '' submit "$root/jobs/slurm-array.sh" ./images.yaml run.dir=many run.name=foo optim.lr=0.3
holds 'also to any configuration' test "$(name)" = '[run.name=foo-2]'
check 0 '' submit "$root/jobs/slurm-array.sh" ./images.yaml run.dir=many
holds 'the name of the file' test "$(name)" = '[run.name=images-2]'
check 64 'leave run.seed out' submit many.sh run.seed=4

# Refused before anything is written.
check 78 'the grid has 4 ranks' sbatch grid.dp=4 --nodes 3 -o no.sh
check 78 'choose --nodes and --ntasks-per-node that make 4' sbatch grid.dp=4 --nodes 2 --ntasks-per-node 1 -o no.sh
check 64 'no multiple of grid.pp 3' sbatch grid.pp=3 --nodes 2 --ntasks-per-node 2 -o no.sh
check 78 'optim.lrr' sbatch optim.lrr=1 -o no.sh
check 78 'grid.pp' sbatch grid.pp=99 -o no.sh
check 78 "there is no model 'lenett'" sbatch model.name=lenett -o no.sh
check 66 'no-such.yaml' "$WEFT" sbatch no-such.yaml -o no.sh
check 64 'missing configuration file' "$WEFT" sbatch
check 64 'each thread needs a core' sbatch train.threads=4 --cpus-per-task 2 -o no.sh
check 64 'expected a length of time' sbatch --time 90 -o no.sh
check 64 'expected a length of time' sbatch --time 0s -o no.sh
check 64 'expected numbers' sbatch --array '1-3 --wrap=x' -o no.sh
for list in 4-1 '' , 1, ,1 1-2-3 1:2 1-4:0 1-4% 1-4%0 1%2,3 -1 4000001 99999999999999999999 '1 2'; do check 64 'expected numbers' sbatch --array "$list" -o no.sh; done
for size in foo '' G B 8.5G 8GG 8B 8GBB -1 '8 G' 0x8; do check 64 'expected a size' sbatch --mem "$size" -o no.sh; done
check 64 'expected letters' sbatch --partition 'a b' -o no.sh
check 64 'expected letters' sbatch --account '' -o no.sh
check 64 'expected options' sbatch --more 'qos=high' -o no.sh
check 64 'cannot be combined' sbatch --array 1-3 --chain 2 -o no.sh
check 64 'leave run.seed out' sbatch --array 1-3 run.seed=4 -o no.sh
check 64 'needs -o FILE' sbatch --chain 2
check 64 'for hosts without Slurm' sbatch --hosts hosts --partition a -o no.sh
check 64 'a rank has one GPU' sbatch --gpus 4 --ntasks-per-node 2 -o no.sh
check 78 'but --gpus requests GPUs' sbatch --gpus 4 train.device=cpu -o no.sh
check 78 'the number of GPUs per node' sbatch train.device=cuda -o no.sh
check 64 'run it without mpirun' env OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 "$WEFT" sbatch images.yaml -o no.sh
mkdir 'back\slash'
mkdir '%j'
check 64 'does not accept a folder with a backslash' env -C '%j' "$WEFT" sbatch ../images.yaml data.train=../images.h5 -o no.sh
check 64 'does not accept a folder with a backslash' env -C 'back\slash' "$WEFT" sbatch ../images.yaml data.train=../images.h5 -o no.sh
check 74 'no-such/no.sh' sbatch -o no-such/no.sh
holds 'nothing is written' test -z "$(find . -name '*no.sh*')"
# A program without CUDA plans for no GPU.
if "$WEFT" --version | grep -q "CUDA: built without"; then
    check 78 'without CUDA' sbatch --gpus 4 --nodes 2 -o no.sh
else
    check 0 '' sbatch --gpus 4 --nodes 2
    holds 'GPUs of a node' says '#SBATCH --gpus-per-node=4'
    holds 'a rank for each' says '#SBATCH --ntasks-per-node=4'
fi
check 0 '' sbatch --gpus 4 --nodes 2 --mem 100G
holds 'GPUs are used' says 'defaults=(train.device=cuda)'

# Files.
echo mine >file
check 64 'already there' sbatch -o file
holds 'a file stays' grep -qx mine file
check 0 '' sbatch -o file --force
holds 'unless asked' grep -q '^srun ' file
echo mine >target
ln -s target link
check 64 'symbolic link' sbatch -o link
check 64 'symbolic link' sbatch -o link --force
holds 'what a link names stays' grep -qx mine target
ln -s nowhere dangling
check 64 'symbolic link' sbatch -o dangling
holds 'also where it is not there' test ! -e nowhere
check 64 'folder' sbatch -o jobs --force
holds 'nothing is left over' test -z "$(find . -name '*.part')"

# jobs/hosts.sh receives a stop request before each of its commands in turn, from the trap on to the command that waits for mpirun. It
# ends with 75, and no training runs to its end. mpirun, weft and sleep are replaced by scripts.
mkdir early
cat >early/mpirun <<'SH'
#!/bin/sh
if [ "$1" = --version ]; then
    [ "$tell" != version ] || { kill -TERM "$script"; kill -TERM $$; }
    echo 'Open MPI'
    exit
fi
[ "$tell" != deaf ] || { kill -TERM "$script"; exec /bin/sleep 60; }
signals=0
trap '[ $((signals += 1)) -lt 3 ] || exit "$ends"' USR1
[ "$tell" != start ] || kill -TERM "$script"
for _ in $(seq "$lasts"); do /bin/sleep 0.1; done
echo >>trained
exit "$ends"
SH
cat >early/weft <<'SH'
#!/bin/sh
[ "$tell" != newest ] || { kill -TERM "$script"; kill -TERM $$; }
SH
printf '#!/bin/sh\nexec /bin/sleep 0.1\n' >early/sleep
cat >early/hook <<'SH'
export script=$$
commands=0
before() {
    [ $BASH_SUBSHELL = 0 ] && { [ $commands -gt 0 ] || [ -n "$(trap -p TERM)" ]; } || return 0
    [ $((commands += 1)) = "$tell" ] || return 0
    echo "$1" >at
    kill -TERM $$
}
set -T
trap 'before "$BASH_COMMAND"' DEBUG
SH
chmod +x early/*
# stop_at WHEN CODE ENDS LASTS : requests a stop at WHEN; the script ends with CODE, and mpirun with ENDS after three signals or after
# LASTS tenths of a second.
stop_at() {
    rm -f at trained
    check "$2" '' env PATH="$PWD/early:$PATH" WEFT="$PWD/early/weft" BASH_ENV="$PWD/early/hook" tell="$1" ends="${3:-75}" lasts="${4:-600}" \
        timeout 100 bash "$root/jobs/hosts.sh" hosts images.yaml
}
echo "localhost slots=2" >hosts
for ((n = 1; n < 100; ++n)); do
    stop_at $n 75
    holds "stopped before command $n, $(cat at), it does not train on" test ! -e trained
    case $(cat at) in 'wait $mpirun') break;; esac
done
holds "$n moments" test $n -gt 20 -a $n -lt 100
for moment in version newest deaf start; do stop_at $moment 75; done
holds 'nothing was trained to its end' test ! -e trained
stop_at start 0 0
stop_at start 65 65
stop_at start 75 1
stop_at start 75 137

# Hosts without Slurm, for real: a run that stops, and one of which a rank is killed, is started again and goes on, to the bits
# of one that never stopped.
if ! mpirun --version 2>&1 | grep -q 'Open MPI'; then echo '  skipped: no mpirun of Open MPI'; finish; exit; fi
unset SLURM_JOB_ID
echo "localhost slots=2" >hosts
last=checkpoints/step-00000060.h5
words="train.steps=60 checkpoint.every_steps=5 train.log_every=10"
# A pause after each of ten epochs, so that the time of a start is over before the run.
pauses=(run.hook="sleep 0.4" run.hook_s=5 'run.hook_on=[epoch]' run.hook_wait=true)
check 0 '' timeout 120 "$WEFT" train images.yaml run.name=whole train.threads=1 $words
check 0 '' sbatch --hosts hosts --nodes 1 --ntasks-per-node 2 run.name=parts $words -o hosts.sh
holds 'the ranks that were asked for' grep -q -- '-n 2)' hosts.sh
timeout 180 bash hosts.sh run.max_time=1s "${pauses[@]}" >parts.log 2>&1 &
script=$!
# processes below the script: mpirun, then its ranks
ranks() { own "^$WEFT train images.yaml run.name=$1 "; }
saved() { ls "runs/$1/checkpoints/"step-*.h5 >/dev/null 2>&1; }
soon saved parts
kill -KILL "$(ranks parts | head -n 1)" || true
code=0
wait $script || code=$?
holds "it comes to its end ($code)" test $code = 0
holds 'in several starts' test "$(grep -c 'resuming from' parts.log)" -ge 2
holds 'a rank was lost, and the time was over' grep -q 'run.max_time' parts.log
[ $code = 0 ] || cat parts.log
check 0 '' "$WEFT" ckpt diff runs/whole/$last runs/parts/$last
holds 'each rank of each start has a file' test "$(find parts-logs -name stdout -path '*rank.1*' | wc -l)" -ge 3
check 0 'this run is complete' timeout 100 bash hosts.sh
timeout 180 bash "$root/jobs/hosts.sh" hosts images.yaml run.name=stopped train.threads=1 checkpoint.every_steps=100 "${pauses[@]}" >stopped.log 2>&1 &
script=$!
soon saved stopped
kill -TERM "$(pgrep -P $script -x bash)"
code=0
wait $script || code=$?
holds "a signal stops it, saved ($code)" test $code = 75
holds 'and it is not started again' test "$(grep -c 'planned memory per rank' stopped.log)" = 1
[ $code = 75 ] || cat stopped.log
# Options for the first start apply only to that one.
check 0 '' "$WEFT" train images.yaml run.name=once train.steps=1
check 0 'resuming from runs/once/checkpoints/step-00000001.h5' timeout 100 bash "$root/jobs/hosts.sh" hosts images.yaml run.name=once train.steps=2 run.max_time=0.001s run.fresh=true
holds 'moved aside once' test "$(cd runs/once && echo earlier-*)" = earlier-1
check 0 'resuming from runs/no/checkpoints/step-00000001.h5' timeout 100 bash "$root/jobs/hosts.sh" hosts images.yaml run.name=no train.steps=2 run.max_time=0.001s checkpoint.resume=no
# no progress: whatever is started ends with 75
cat >bin/useless <<SH
#!/bin/sh
case "\$*" in *--newest*) exec "$WEFT" "\$@";; esac
echo >>starts
exit 75
SH
chmod +x bin/useless
echo "localhost slots=1" >hosts
check 75 'not started again: three times' env WEFT="$PWD/bin/useless" timeout 100 bash "$root/jobs/hosts.sh" hosts images.yaml run.name=useless
holds 'three starts, no more' test "$(wc -l <starts)" = 3
check 66 'no such host file' bash "$root/jobs/hosts.sh" nowhere images.yaml
mkfifo fifo
check 66 'no such host file' timeout 20 bash "$root/jobs/hosts.sh" fifo images.yaml
for other in fifo . /dev/zero; do check 66 "--hosts $other: cannot be read: it is a" sbatch --hosts $other -o no.sh; done
holds 'nothing is written' test ! -e no.sh
holds 'nothing runs on' test -z "$(ranks parts)$(ranks stopped)"
finish
