#!/usr/bin/env bash
# Writes the job scripts of jobs/ by `weft sbatch` for any configuration, one of each kind. tests/cli/sbatch.sh fails if jobs/ has
# others.
# usage: jobs.sh WEFT [FOLDER]     (FOLDER/jobs/*.sh; default: this repository)
set -eu
weft=$(realpath "$1")
config=$(cd "$(dirname "$0")/.." && pwd)/jobs/fashion.yaml
cd "${2:-$(dirname "$0")/..}"
put() { "$weft" sbatch "$config" --any-config --force -o "jobs/$1" "${@:2}"; }
put slurm-one-node.sh --nodes 1 --ntasks-per-node 4
put slurm.sh --nodes 2 --ntasks-per-node 2
put slurm-gpus.sh --nodes 2 --gpus 4
put slurm-array.sh --nodes 1 --ntasks-per-node 4 --array 1-4
put slurm-chain.sh --nodes 2 --ntasks-per-node 4 --chain 4
put hosts.sh --hosts FILE
chmod 755 jobs/*.sh
