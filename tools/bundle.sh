#!/usr/bin/env bash
# Puts a bundle's program, Open MPI's launcher and plugins, and the libraries they need into one folder that can be copied anywhere. It
# does not contain glibc, the driver and CUDA's libraries. The file SIZES lists the space of each part.
# usage: bundle.sh PROGRAM FOLDER ARCHIVES TEST...     tests by their names in PROGRAM (tests/parallel/test_sum_np2); ARCHIVES: the
# folder that says where what is in PROGRAM statically came from
set -eu
program=$1 out=$2 archives=$3
shift 3
here=$(cd "$(dirname "$0")" && pwd) root=$(dirname "$here") new=$out.new
stop() { echo "make bundle: $1" >&2; exit 1; }
trap 'rm -rf "$new"' EXIT

mpirun=$(command -v mpirun) || stop "mpirun is not in PATH"
case $("$mpirun" --version 2>&1 | head -n 1) in
    *"(Open MPI) 4."*) ;;
    *) stop "only Open MPI 4 can be packed, not this mpirun: $("$mpirun" --version 2>&1 | head -n 1)";;
esac
mpirun=$(readlink -f "$mpirun") orted=$(readlink -f "$(command -v orted)")
dir_of() { ompi_info --parsable --path "$1" | cut -d: -f3; }
plugins=$(dir_of pkglibdir) texts=$(dir_of pkgdatadir)

# Prints the shared libraries that files need, except glibc's, as "NAME PATH" lines.
libraries() {
    ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }' | sort -u |
        grep -vE '^(linux-vdso|ld-linux[^ ]*|lib(c|m|dl|rt|pthread|resolv|util))\.so' || true
}
all_there() { if ldd "$@" | grep -F 'not found'; then stop "these libraries are missing here"; fi; }

# MPI over shared memory and TCP, rsh and Slurm. Not OpenSHMEM, parallel files and monitoring, nor a plugin for a network whose own
# library would have to come along (UCX, libfabric, verbs), nor what weft does not ask MPI for: one-sided messages, messages between
# two groups, ranks placed by a graph, a file or a card, fast sums (those are weft's own); nor what Open MPI has another of, which it
# takes first, nor its own tools' and other launchers' parts.
frameworks="allocator bml btl coll errmgr ess filem grpcomm iof mpool odls oob op patcher plm pmix pml pstat ras rcache
    reachable regx rmaps rml routed rtc schizo shmem state topo"
choose_plugins() {
    local file known
    known=" $(libraries "$program" "$mpirun" "$orted" "$plugins"/mca_pmix_*.so | cut -d' ' -f1 | tr '\n' ' ') "
    for f in $frameworks; do
        for file in "$plugins/mca_${f}"_*.so; do
            case ${file##*/mca_} in
                *_monitoring.so | osc_* | topo_treematch.so | coll_han.so | coll_adapt.so | op_avx.so | pml_cm.so | pmix_flux.so) continue;;
                coll_sm.so | coll_sync.so | coll_inter.so | odls_pspawn.so | ras_simulator.so | state_novm.so) continue;;
                rmaps_mindist.so | rmaps_rank_file.so | rmaps_resilient.so | rmaps_seq.so) continue;;
                regx_naive.so | regx_reverse.so | routed_binomial.so | mpool_hugepage.so) continue;;
                ess_tool.so | state_tool.so | schizo_flux.so | schizo_jsm.so) continue;;
                filem_raw.so | pstat_linux.so) continue;; # files copied before a start, the statistics of orte-top
            esac
            for l in $(libraries "$file" | cut -d' ' -f1); do
                case $l in libmca_common_*) continue;; esac
                case $known in *" $l "*) ;; *) continue 2;; esac
            done
            echo "$file"
        done
    done
}

script() { # NAME COMMAND: writes a script that finds its bundle, whatever path it is called by
    mkdir -p "$new/$(dirname "$1")"
    cat >"$new/$1" <<SH
#!/bin/sh
bundle=\$(dirname -- "\$(readlink -f -- "\$0")") && bundle=\${bundle%/$(dirname "$1")}
. "\$bundle/env.sh"
$2
SH
    chmod 755 "$new/$1"
}

put_programs() {
    mkdir -p "$new/libexec" "$new/jobs" "$new/tests"
    cp "$program" "$new/libexec/weft"
    cp "$mpirun" "$new/libexec/mpirun"
    cp "$orted" "$new/libexec/orted"
    cp "$here/bundle/env.sh" "$here/bundle/cuda_packages.sh" "$new"
    # the names by which the program loads these libraries if it needs a GPU
    grep -aoE 'lib(cublasLt|cudnn|nccl)\.so\.[0-9]+' "$program" | sort -u >"$new/cuda_libraries" || true
    cp "$root/LICENSE" "$new"
    cp "$root"/jobs/*.yaml "$root"/jobs/*.sh "$new/jobs"
    cp "$root/tests/run.sh" "$new/tests"
    script bin/weft 'exec "$bundle/libexec/weft" "$@"'
    # Open MPI fails without ssh, even if all ranks are on one node.
    script bin/mpirun '[ -n "${OMPI_MCA_plm_rsh_agent-}" ] || command -v ssh >/dev/null || command -v rsh >/dev/null ||
    export OMPI_MCA_plm="${OMPI_MCA_plm:-^rsh}"
exec "$bundle/libexec/mpirun" --prefix "$bundle" "$@"'
    script bin/orted 'exec "$bundle/libexec/orted" "$@"'
    for t in "$@"; do script "$t" "exec \"\$bundle/libexec/weft\" $t \"\$@\""; done
    script check 'cd "$bundle" && exec tests/run.sh ${*:-tests/*/test_*}'
}

put_open_mpi() {
    mkdir -p "$new/lib/openmpi" "$new/lib/pmix" "$new/etc" "$new/share/openmpi" "$new/share/pmix"
    cp $chosen "$new/lib/openmpi"
    cp "$texts"/help-*.txt "$new/share/openmpi"
    # texts of plugins and commands that are not in the bundle
    rm -f "$new"/share/openmpi/help-{mpi-btl-openib,mtl,opal-common-verbs,oshmem,shmem,opal_info,opal-wrapper,orte-info,orte-server,orte-clean}*
    : >"$new/etc/openmpi-mca-params.conf"
    local pmix
    pmix=$(libraries $chosen | awk '$1 ~ /^libpmix/ { print $2 }')
    [ -n "$pmix" ] || return 0
    pmix=$(dirname "$(readlink -f "$pmix")")
    cp "$pmix"/pmix/*.so "$new/lib/pmix"
    cp "${pmix%/lib}"/share/pmix/help-*.txt "$new/share/pmix"
    rm -f "$new"/share/pmix/help-{pmix-info,pattrs,pquery,pps,pevent,plookup,pmixcc}.txt
}

put_libraries() {
    local name path
    libraries "$program" "$mpirun" "$orted" $chosen "$new"/lib/pmix/*.so | while read -r name path; do cp -L "$path" "$new/lib/$name"; done
    find "$new/lib" "$new/libexec" -type f -exec chmod u+w {} + -exec strip --strip-unneeded {} +
}

put_licences() { # the licence texts of Debian's packages, each once
    command -v dpkg-query >/dev/null || return 0
    mkdir -p "$new/licences"
    { libraries "$program" $chosen | cut -d' ' -f2-; cat "$archives"/*.from; } |
        while read -r path; do dpkg-query -S "$(readlink -f "$path")" 2>/dev/null | cut -d: -f1; done | sort -u |
        while read -r p; do
            copyright=/usr/share/doc/$p/copyright other=
            for have in "$new"/licences/*; do if cmp -s "$copyright" "$have"; then other=$have; fi; done
            if [ -n "$other" ]; then mv "$other" "$other+$p"; else cp -L "$copyright" "$new/licences/$p"; fi
        done
    gzip -9n "$new"/licences/*
}

glibc_needed() {
    find "$new/lib" "$new/libexec" -type f -exec objdump -T {} + 2>/dev/null | grep -oE 'GLIBC_[0-9]+\.[0-9.]+' | sort -uV | tail -n 1 | cut -d_ -f2
}

put_readme() {
    cat >"$new/README" <<TEXT
weft $(cat "$root/VERSION"), to be copied anywhere: $(uname -m), Linux, glibc $glibc or newer.
    bin/weft --version          what it finds on this machine
    bin/weft train -n 2 JOB     jobs/ has some; bin/mpirun is Open MPI $("$mpirun" --version | sed -n '1s/.* //p') over shared memory and TCP
    ./check                     the tests that came along; without a GPU that of CUDA says so and is skipped
For GPUs the machine needs NVIDIA's driver, and cuBLAS, cuDNN and NCCL in \$LD_LIBRARY_PATH, \$CUDA_HOME/lib64
(default /usr/local/cuda) or the packages of a Python (\$PYTHON, default python3), as PyTorch brings them: see the
versions that --version asks for.
TEXT
}

bytes() { find "$@" -type f -printf '%s\n' | awk '{ s += $1 } END { print s + 0 }'; }
table() {
    local all
    all=$(bytes "$new")
    (cd "$new" && find . -type f -size +256k -printf '%s %P\n' | sort -rn)
    echo "$(bytes "$new/lib/openmpi" "$new/lib/pmix" "$new/share") Open MPI's plugins and texts"
    echo "$all all"
}

all_there "$program" "$mpirun" "$orted"
chosen=$(choose_plugins)
rm -rf "$new"
put_programs "$@"
put_open_mpi
put_libraries
put_licences
glibc=$(glibc_needed)
put_readme
sizes=$(table | awk '{ s = $1; $1 = ""; printf "  %6.2f MB %s\n", s / 1e6, $0 }')
{
    echo "$out: copy it to any $(uname -m) Linux with glibc $glibc or newer"
    echo "$sizes"
} >"$new/SIZES"
rm -rf "$out"
mv "$new" "$out"
trap - EXIT
