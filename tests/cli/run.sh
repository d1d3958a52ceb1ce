#!/usr/bin/env bash
# weft run: which exit codes lead to another start; a killed rank changes no bit; signals; logs; the folder's owner; lost hosts, with a
# replacement for mpirun that knows three of them by name and starts all ranks locally.
. "$(dirname "$0")/images.bash"
. "$(dirname "$0")/common.bash"
set -m # background jobs get separate process groups, with the handling of SIGINT of a prompt
make_images
export OMPI_MCA_rmaps_base_oversubscribe=1
end=checkpoints/step-00000240.h5

newest() { ls runs/"$1"/checkpoints/step-*.h5 2>/dev/null | tail -n 1; }
# prints the process of a run's rank RANK, or of the only rank
rank_of() { # NAME RANK
    local words=".*run.name=$1( |\$)"
    if [ "${2:-}" ]; then rank_pid "$words" "$2"; else own "^$WEFT train $words"; fi | head -n 1
}
# begin NAME WORDS... -- WORDS... : starts weft run in the background, with its process in $run; the words after -- are those of weft
# train.
begin() {
    local name=$1 own=()
    shift
    while [ "$1" != -- ]; do own+=("$1"); shift; done
    shift
    rm -f out err
    background out,err "$WEFT" run "${own[@]}" -- "$WEFT" train images.yaml run.name="$name" "$@"; run=$!
}
ends() { # WHAT CODE TEXT
    local rc=0
    wait "$run" || rc=$?
    cat out err >both
    holds "$1: exit code $2, not $rc: $(tail -n 5 err)" test "$rc" = "$2"
    [ -z "$3" ] || holds "$1: it says '$3': $(cat err)" grep -qF -- "$3" both
}
says() { holds "it says '$1': $(cat err)" grep -qF -- "$1" err; }
says_not() { holds "it does not say '$1': $(cat err)" test -z "$(grep -F -- "$1" err)"; }
another() { [ -n "$(newest "$1")" ] && [ "$(newest "$1")" != "$2" ]; } # NAME NOT-THIS

# The command line.
check 64 'expected -- weft train CONFIG' "$WEFT" run
check 64 'expected -- weft train CONFIG' "$WEFT" run -n 2 -- weft eval images.yaml
check 64 '-n: after -- only `weft train CONFIG [key=value ...]` is allowed; put -n before it' "$WEFT" run -- weft train -n 2 images.yaml
check 66 'no.yaml' "$WEFT" run -n 2 -- weft train no.yaml
check 78 'optim.lrr' "$WEFT" run -n 2 -- weft train images.yaml optim.lrr=1
check 64 'this is no batch job on several hosts; give --hostfile' "$WEFT" run --nnodes 2 -- weft train images.yaml
check 64 'this is no batch job; start it with salloc or sbatch' timeout 20 "$WEFT" run -n 2 --launcher srun -- weft train images.yaml
check 66 'no.hosts' "$WEFT" run --hostfile no.hosts -- weft train images.yaml
printf 'a slots=2\n' >one.host
check 64 '--nnodes 3, but one.host has 1 host' "$WEFT" run --hostfile one.host --nnodes 3 -- weft train images.yaml
check 64 '-n 3 is more than --nnodes 1 times --nproc-per-node 2' "$WEFT" run -n 3 --nnodes 1 --nproc-per-node 2 -- weft train images.yaml
check 64 '--log-dir needs a value' "$WEFT" run -n 2 --log-dir -- weft train images.yaml
printf 'a slots=x\n' >bad.hosts
check 64 'bad.hosts:1: expected NAME' "$WEFT" run --hostfile bad.hosts -- weft train images.yaml
holds 'nothing was started' test ! -e runs

# A killed rank is named, and another start follows with the same bits as an undisturbed run; each rank's output is in a file.
check 0 '' timeout 120 "$WEFT" run -n 2 -- weft train images.yaml run.name=quiet train.steps=240
holds 'of one start nothing is said' test -z "$(grep 'weft run' err)"
begin killed -n 2 --log-dir logs/deep -- train.steps=240 checkpoint.every_steps=20
soon another killed ''
victim=$(rank_of killed 1)
kill -KILL "$victim"
ends 'a killed rank' 0 "start 1: rank 1 (process $victim) was killed by signal 9"
says 'start 2: 2 ranks, from step '
check 0 '' "$WEFT" ckpt diff runs/quiet/$end runs/killed/$end
for file in start-1/rank-0 start-1/rank-1 start-2/rank-0 start-2/rank-1; do holds "logs/deep/$file.log" test -e logs/deep/$file.log; done
holds 'what rank 0 says is in its file' grep -q 'resuming from runs/killed/checkpoints/' logs/deep/start-2/rank-0.log
holds 'and nowhere else' test -z "$(grep 'step [0-9]*/' both)"
holds 'the folder knows that its owner has ended' grep -q '"start":2,.*"ended":true' runs/killed/owner-*
check 0 'start-3' timeout 60 "$WEFT" run --log-dir logs/deep -- weft train images.yaml run.name=killed train.steps=240
mkdir others
check 0 'step 2/' env WEFT_LOG_DIR="$dir/others" timeout 60 "$WEFT" run -n 2 -- weft train images.yaml run.name=inner train.steps=2
holds 'nothing is written to the folder of another run' test -z "$(ls others)"

# One rank needs no mpirun.
begin alone -- train.steps=240 checkpoint.every_steps=20
soon another alone ''
kill -KILL "$(rank_of alone)"
ends 'a rank alone' 0 'start 2: 1 rank, from step '
check 0 '' "$WEFT" ckpt diff runs/quiet/$end runs/alone/$end

# Ranks that cannot be started: mpirun's words give the reason, and there is no other attempt.
check 64 'could not be started; mpirun says:' timeout 60 "$WEFT" run -n 2 -- "$dir/none" train images.yaml run.name=none
says "$dir/none"
says_not 'signal'
says_not 'start 2'
check 64 "$dir/none cannot be run: No such file" timeout 60 "$WEFT" run -- "$dir/none" train images.yaml run.name=none
# a replacement for mpirun that ends with the codes of the file `codes`, one per call, and prints the reason
mkdir refusing
cat >refusing/mpirun <<'SH'
#!/bin/sh
echo >>calls
code=$(sed -n "$(wc -l <calls)p" codes)
[ "$code" = 0 ] || [ "$OMPI_MCA_orte_execute_quiet" = 1 ] || echo 'there is no room'
exit "$code"
SH
chmod +x refusing/mpirun
refused() { # CODE TEXT CODES WORDS... : runs weft with the words
    rm -f calls
    printf '%b\n' "$3" >codes
    check "$1" "$2" env PATH="$dir/refusing:$PATH" timeout 60 "$WEFT" "${@:4}"
}
refused 74 'could not be started; mpirun says:' '132\n1' train -n 2 images.yaml run.name=none
says 'there is no room'
refused 0 'start 2: the ranks could not be started; mpirun says:' '74\n132\n132\n0' run -n 2 -- weft train images.yaml run.name=none
says 'there is no room'
refused 74 'start 1: a rank was killed by signal 9' '137\n0' run -n 2 --max-restarts 0 -- weft train images.yaml run.name=none

# Ranks that end by themselves: those that mpirun then kills are not reported as lost.
check 74 'start 1: the ranks ended with exit code 74' timeout 60 "$WEFT" run -n 2 --max-restarts 0 -- weft train images.yaml run.dir=/proc/none
says_not 'was lost'

# A stop request is not a loss.
for signal in TERM INT HUP USR1; do
    begin stop$signal -n 2 --
    soon grep -q 'step 2/' out
    kill -$signal "$run"
    ends "$signal" 75 'stopped as requested'
    says_not 'start 2'
    holds "$signal: a checkpoint" test -n "$(newest stop$signal)"
done
# The repeated stop request reaches mpirun at any point of its end.
begin again -n 2 --
soon grep -q 'step 2/' out
mpirun=$(pgrep -P "$run")
kill -TERM "$run"
while kill -USR1 "$mpirun" 2>/dev/null; do sleep 0.001; done
ends 'a stop request at mpirun'\''s end' 75 'stopped as requested: start the same command again'

begin limit -n 2 -- run.max_time=1s
ends 'its own time limit' 75 'the training stopped by itself and has saved a checkpoint'
says_not 'start 2'

# When a whole job is ended, each of its processes receives the signal, mpirun first. A job of one host also has a host file.
printf 'localhost\n%s\n' "$(hostname)" >here.nodes
for nodes in '' here.nodes; do
    [ -z "$nodes" ] || export PBS_NODEFILE=$PWD/here.nodes PBS_JOBID=7
    begin all$nodes -n 2 -- checkpoint.every_steps=0
    soon grep -q '^epoch.* step' out
    kill -TERM $(pgrep -P "$run") $(own "^$WEFT train .*run.name=all$nodes ") "$run"
    ends "all get a signal to end $nodes" 75 'stopped as requested: start the same command again'
    holds 'saved' test -n "$(newest all$nodes)"
done
unset PBS_NODEFILE PBS_JOBID
# weft run has received the SIGTERM
heard() { [ $((0x$(sed -n 's/^ShdPnd:[[:space:]]*//p' "/proc/$run/status") & 0x4000)) = 0 ]; }
# It is killed after a stop request: the message says what is lost, whether it has saved or not.
for every in 0 20; do
    begin lost$every -n 2 -- checkpoint.every_steps=$every
    soon eval '[ $every = 0 ] && grep -q "^epoch.* step" out || another lost$every ""'
    rank=$(rank_of lost$every 1)
    kill -STOP "$rank"
    kill -TERM "$run"
    soon heard
    kill -KILL "$rank"
    what=$([ $every = 0 ] && echo 'there is no checkpoint, so all results' || echo 'results after the newest checkpoint')
    ends "killed while it stops, $every" 75 "stopped as requested; $what are lost: start"
done
# Its last save fails: the message says so, and what is lost.
begin unsaved -n 2 -- checkpoint.every_steps=20
soon another unsaved ''
# A save that begins between the two commands makes the folder again: then that one is moved, too.
aside=0
until mv -T runs/unsaved/checkpoints "runs/unsaved/aside$((++aside))" && : >runs/unsaved/checkpoints; do :; done 2>/dev/null
kill -TERM "$run"
ends 'its last save fails' 75 'stopped as requested; results after the newest checkpoint are lost: start'
# It waits for an owner on another host: nothing has been computed.
mkdir runs/waits
sed 's/\("place": *"\)[^"]*/\1elsewhere/; s/\("ended": *\)true/\1false/' runs/quiet/owner-1 >runs/waits/owner-1
begin waits -n 2 --
soon grep -q 's for a heartbeat' err
kill -TERM "$run"
ends 'stopped before it began' 75 'stopped as requested: start the same command again'

# run.fresh renames an earlier run once, and not the files of its first start.
check 0 '' timeout 60 "$WEFT" train images.yaml run.name=fresh train.steps=2
begin fresh -n 2 -- run.fresh=true checkpoint.every_steps=3
soon test -e runs/fresh/earlier-1
soon another fresh ''
kill -KILL "$(rank_of fresh 1)"
soon grep -q 'resuming from runs/fresh/checkpoints/' err
kill -TERM "$run"
ends 'run.fresh' 75 'stopped as requested: start the same command again, but without run.fresh, to continue'
holds 'moved aside once' test ! -e runs/fresh/earlier-2

# A start that was lost before it had moved the earlier run leaves that to the next start.
for begun in false true; do
    check 0 '' timeout 60 "$WEFT" train images.yaml run.name=lost$begun train.steps=2
    sed -i "s/\"run\":\"\"/\"run\":\"0123456789abcdef\"/; s/\"start\":0/\"start\":1/; s/\"begun\":true/\"begun\":$begun/" runs/lost$begun/owner-1
    check 0 '' env WEFT_RUN=0123456789abcdef:2 timeout 60 "$WEFT" train images.yaml run.name=lost$begun train.steps=3 run.fresh=true
    holds "begun: $begun" test "$begun" = "$(test -e runs/lost$begun/earlier-1/checkpoints/step-00000002.h5 && echo false || echo true)"
done

# checkpoint.resume=no refuses the run of an earlier command, and not the files of its first start.
check 78 'already holds a run' timeout 60 "$WEFT" run -n 2 -- "$WEFT" train images.yaml run.name=fresh checkpoint.resume=no
begin no -n 2 -- checkpoint.resume=no checkpoint.every_steps=3
soon another no ''
kill -KILL "$(rank_of no 1)"
soon grep -q 'resuming from runs/no/checkpoints/' err
kill -TERM "$run"
ends 'checkpoint.resume=no' 75 'stopped as requested'

# Which exit codes lead to another start: a replacement for weft leaves the checkpoint of a step (0: none, x: a damaged one with a large
# number) and ends with a code; each line of `plan` is for one start, the last line also for all later ones.
mkdir -p runs/fake/checkpoints
cat >fake <<SH
#!/bin/sh
checkpoint=runs/quiet/$end
SH
cat >>fake <<'SH'
echo start >>starts
line=$(sed -n "$(wc -l <starts)p" plan)
set -- ${line:-$(tail -n 1 plan)}
case $1 in
0) ;;
x) echo x >runs/fake/checkpoints/step-00009999.h5 ;;
*) cp "$checkpoint" "runs/fake/checkpoints/step-0000000$1.h5" ;;
esac
[ "$2" -gt 128 ] && kill -$(($2 - 128)) $$
exit "$2"
SH
chmod +x fake
# starts CODE COUNT TEXT PLAN FLAGS... : checks the number of starts, the exit code and the message
starts() {
    local code=$1 count=$2 text=$3 plan=$4
    shift 4
    rm -f starts runs/fake/checkpoints/*
    printf '%b\n' "$plan" >plan
    check "$code" "$text" timeout 60 "$WEFT" run "$@" -- ./fake train images.yaml run.name=fake
    holds "$plan: $count starts, not $(wc -l <starts)" test "$(wc -l <starts)" = "$count"
}
starts 0 1 '' '0 0'
for code in 64 65 66 71 78; do starts $code 1 "another start would end with exit code $code too" "0 $code"; done
starts 74 3 'three consecutive starts left no newer checkpoint' '0 137'
says 'was killed by signal 9'
starts 74 3 'three consecutive starts' '0 74'
starts 74 3 'three consecutive starts' '0 75' # a neighbour's end, and not a stop: nobody has ended in order
starts 70 3 'three consecutive starts' '0 70'
starts 70 3 'three consecutive starts' '0 139'
starts 74 3 'three consecutive starts' '0 1'
starts 0 6 'start 6: 1 rank, from step 5' '1 137\n2 74\n3 75\n4 70\n5 139\n5 0'
starts 74 6 'three consecutive starts' '1 137\n0 137\n2 137\n0 137\n0 137\n0 137'
starts 0 6 'start 6: 1 rank, from step 4' '1 137\nx 137\n2 137\n3 137\n4 137\n0 0' # the damaged checkpoint counts neither as progress nor for resuming
says 'start 3: 1 rank, from step 1'
starts 74 3 'three consecutive starts' 'x 137'
starts 0 5 'start 5: 1 rank, from step 2' '2 137\n1 137\n3 137\n2 137\n0 0' # older than a checkpoint that could not be loaded
starts 74 3 '--max-restarts is reached' '1 137\n2 137\n3 137\n4 0' --max-restarts 2
starts 74 1 '--max-restarts is reached' '1 137' --max-restarts 0
printf '0 137\n' >plan
rm -f starts runs/fake/checkpoints/*
background out,err "$WEFT" run -- ./fake train images.yaml run.name=fake; run=$!
soon eval '[ "$(wc -l <starts)" = 2 ]'
kill -TERM "$run"
ends 'a signal between two starts' 75 'stopped as requested'

# The folder's owner: a live one is named; a dead one is replaced, at once on this host, else after four beats.
begin owned -n 2 --
soon grep -q 'step 2/' out
check 78 "another run is using this folder (process $(rank_of owned 0) on $(hostname)" "$WEFT" train images.yaml run.name=owned
check 78 'another run is using' "$WEFT" run -n 2 -- weft train images.yaml run.name=owned
holds 'and is not tried again' test -z "$(grep 'start 2' both)"
mkdir away && cp runs/owned/owner-* away
rm runs/owned/owner-*
wait "$run" || rc=$?
holds "an owner whose lease is gone ends: exit code $rc" test "$rc" = 78
cp away/owner-* runs/owned
check 0 'done' timeout 60 "$WEFT" train images.yaml run.name=owned train.steps=3 checkpoint.resume=no run.fresh=true
holds 'of a dead process nothing is said' test -z "$(grep 's for a heartbeat' both)"
sed 's/"place":"/&elsewhere /; s/"beat_s":5/"beat_s":0.2/' away/owner-* | head -c 1024 >runs/owned/owner-9
check 0 'gives no heartbeat' timeout 60 "$WEFT" train images.yaml run.name=owned train.steps=3
sed 's/"place":"/&elsewhere /; s/"beat_s":5/"beat_s":1/' away/owner-* | head -c 1024 >runs/owned/owner-19
(for i in $(seq 600); do printf "$((i % 10))" | dd of=runs/owned/owner-19 bs=1 seek=1020 conv=notrunc 2>/dev/null; sleep 0.1; done) & beats=$!
check 78 'another run is using this folder (process' timeout 60 "$WEFT" train images.yaml run.name=owned train.steps=3
kill "$beats"

# Hosts a, b and c; those with a file in up/ answer. With the file fails_once the next mpirun for host b alone fails, as one now and then
# does when another one ends.
mkdir -p bin up
: >up/a >up/b >up/c
mpirun=$(command -v mpirun)
cat >bin/mpirun <<SH
#!/bin/sh
[ "\$1" = --host ] || exec $mpirun "\$@"
echo "\$2" >>asked
[ "\$2" != b:1 ] || [ ! -e "$PWD/fails_once" ] || { rm "$PWD/fails_once"; exit 1; }
for host in \$(echo "\$2" | tr ',' ' '); do [ -e "$PWD/up/\${host%:*}" ] || exit 255; done
shift 2
[ "\$1" != --map-by ] || shift 2
exec $mpirun --oversubscribe "\$@"
SH
chmod +x bin/mpirun
PATH=$PWD/bin:$PATH
printf '# three of them\na slots=1\nb:1\nc\n' >three.hosts
printf 'd\n' >unknown.hosts
begin unknown --hostfile unknown.hosts --
soon grep -q 'too few hosts answer: waiting for them' err
says "start 1: a rank was lost (mpirun's exit code is 255), or none could be started: see mpirun's messages above"
kill -TERM "$run"
ends 'no host answers' 75 'stopped as requested'
check 64 'have room for 3' "$WEFT" run -n 4 --hostfile three.hosts -- weft train images.yaml
begin hosts --hostfile three.hosts --nnodes 2 -- train.steps=240 checkpoint.every_steps=20
soon another hosts ''
says 'start 1: 2 ranks on a,b'
rm up/b
kill -KILL "$(rank_of hosts 0)"
soon grep -q 'start 2: 2 ranks on a,c' err
at=$(newest hosts)
says 'no answer from b'
soon another hosts "$at"
rm up/c
kill -KILL "$(rank_of hosts 1)"
ends 'hosts are lost' 0 'start 3: 1 rank on a'
says 'no answer from b,c'
says '1 of 2 ranks, grid.dp=1'
says 'results stay bit-identical to 2 replicas'
check 0 '' "$WEFT" ckpt diff runs/quiet/$end runs/hosts/$end
: >up/b >up/c
# Six micro-batches: two replicas have three each. grid.dp is replaced on the command line.
begin other --hostfile three.hosts -- train.batch=24 grid.dp=2 checkpoint.every_steps=20
soon another other ''
rm up/b up/c
kill -KILL "$(rank_of other 1)"
soon grep -q 'resuming from' err
says 'results stay bit-identical to 2 replicas'
kill -TERM "$run"
ends 'fewer replicas' 75 'stopped as requested'
: >up/b >up/c
# Eight micro-batches on three replicas: three, three, two and padding. After the loss of the third replica there are two.
begin whole --hostfile three.hosts -- grid.pp=1 grid.dp=3 checkpoint.every_steps=20
soon another whole ''
rm up/c
: >fails_once
kill -KILL "$(rank_of whole 1)"
soon grep -q 'start 2: 2 ranks on a,b' err
holds 'host b was probed twice' test ! -e fails_once
soon grep -q 'resuming from' err
kill -TERM "$run"
ends 'no padding' 75 'stopped as requested'
: >up/c
# If no smaller number of ranks can be planned, the reason is printed and determines the exit code.
cp images.h5 gone.h5
begin gone --hostfile three.hosts -- grid.pp=1 grid.dp=3 checkpoint.every_steps=20 data.train="$PWD/gone.h5"
soon another gone ''
rm up/c gone.h5
kill -KILL "$(rank_of gone 1)"
ends 'data are gone' 66 'no grid fits in the 2 ranks on the remaining hosts, for the reason above'
says 'gone.h5: '
: >up/c
# Without a complete replica of the stages, weft run waits for hosts.
begin stages --hostfile three.hosts --nnodes 2 -- grid.pp=2 checkpoint.every_steps=20
soon another stages ''
rm up/b up/c
kill -KILL "$(rank_of stages 1)"
soon grep -q 'too few hosts answer: waiting for them' err
: >up/c
soon grep -q 'start 2: 2 ranks on a,c' err
soon grep -q 'resuming from' err
kill -TERM "$run"
ends 'stages wait' 75 'stopped as requested'
holds 'no rank is left' soon eval '! own "^$WEFT train images.yaml"'
finish
