#!/usr/bin/env bash
# Trains under Slurm with servers on nodes of their own: all nodes but the last SERVERS (1) have TASKS (as many as cores; --ntasks-per-node)
# ranks that compute, and each of the last ones has one server, which so has all of its node's memory for rows.
#   sbatch jobs/slurm-servers.sh jobs/wide-deep.yaml [key=value ...]      SERVERS=2 sbatch --nodes 6 ...: 4 nodes compute, 2 serve
# A run that is stopped as the job's time is over ends with 75 and goes back to the queue, as in slurm.sh.
#SBATCH --job-name=weft
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=1
#SBATCH --time=04:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=weft-%j.log
set -u
weft=${WEFT:-weft} servers=${SERVERS:-1} tasks=${SLURM_NTASKS_PER_NODE:-1}
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
compute=$((${#nodes[@]} - servers))
[ "$compute" -gt 0 ] || { echo "$servers servers leave none of ${#nodes[@]} nodes to compute" >&2; exit 64; }

# One line a rank: servers are the last ranks of a job.
export SLURM_HOSTFILE=weft-$SLURM_JOB_ID.hosts
for ((i = 0; i < compute; ++i)); do for ((k = 0; k < tasks; ++k)); do echo "${nodes[i]}"; done; done >"$SLURM_HOSTFILE"
for ((i = compute; i < ${#nodes[@]}; ++i)); do echo "${nodes[i]}"; done >>"$SLURM_HOSTFILE"
ranks=$(wc -l <"$SLURM_HOSTFILE")

export SRUN_CPUS_PER_TASK="${SLURM_CPUS_PER_TASK:-1}"
srun --mpi=pmix --kill-on-bad-exit=1 --distribution=arbitrary --ntasks="$ranks" "$weft" train "$@" "grid.servers=$servers"
code=$?
rm -f "$SLURM_HOSTFILE"
[ $code -ne 75 ] || scontrol requeue "$SLURM_JOB_ID" || echo "the job cannot go back to the queue: submit it again" >&2
exit $code
