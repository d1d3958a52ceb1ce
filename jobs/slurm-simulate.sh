#!/usr/bin/env bash
# Trains under Slurm while a simulation writes its files: submits the simulation, and a job that begins a chain of training jobs
# (jobs/slurm-chain.sh) after the simulation has run for MINUTES, when there are files. Each epoch takes the files that are complete by then.
#   bash jobs/slurm-simulate.sh SIMULATION.sh CONFIG [key=value ...]
#   CHAIN=chain.sh bash jobs/slurm-simulate.sh SIMULATION.sh [key=value ...]
# SIMULATION.sh: a job script. It writes each file under another name and renames it at the end, or no file is written to again.
# MINUTES: 30 unless set. CHAIN: a script of `weft sbatch CONFIG --chain N -o chain.sh`, which names CONFIG; it is written when there are some
# files. Unless set, jobs/slurm-chain.sh.
set -eu
usage='usage: [CHAIN=chain.sh] bash slurm-simulate.sh SIMULATION.sh [CONFIG, without CHAIN] [key=value ...]'
[ $# -ge 1 ] || { echo "$usage" >&2; exit 64; }
simulation=$1
shift
# jobs/slurm-chain.sh needs a configuration, a script of `weft sbatch` has one.
case ${1:-}:${CHAIN:+set} in
*.yaml:set | *.yml:set) echo "$CHAIN names its configuration already; $usage" >&2; exit 64 ;;
*.yaml: | *.yml:) ;;
*:) echo "$usage" >&2; exit 64 ;;
esac
chain=$(realpath -e -- "${CHAIN:-$(dirname -- "$0")/slurm-chain.sh}")
id=$(sbatch --parsable "$simulation")
id=${id%%;*}
echo "the simulation is job $id"
# The chain is begun outside of a job, as it looks: its script takes a job's number for that of a link.
printf -v begin '%q ' env -u SLURM_JOB_ID bash "$chain" "$@" data.refresh=epoch
first=$(sbatch --parsable --job-name=weft-begin --ntasks=1 --time=00:05:00 --dependency="after:$id+${MINUTES:-30}" --wrap "$begin")
echo "job ${first%%;*} begins the training ${MINUTES:-30} minutes after it"
