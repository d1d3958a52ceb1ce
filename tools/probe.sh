#!/usr/bin/env bash
# Decides the build by compiling probes: writes probe.mk (for make) and probe.txt (for people, with the reasons).
# usage: probe.sh OUT.mk   (CC from the environment; ONEDNN_ROOT, CUDA_HOME, CUDNN_HOME and NCCL_HOME point at other places; WEFT_HDF5=shared)
set -u
out=$1 dir=$(mktemp -d) cpp= libs= missing=
# Two makes may probe for one folder at the same time: each writes files of its own, which are then renamed.
new=$out.$$ txt=${out%.mk}.txt.$$
trap 'rm -rf "$dir" "$new" "$txt"' EXIT
: >"$txt"; : >"$new"
say() { printf '%-10s %s\n' "$1" "$2" >>"$txt"; }
set_mk() { printf '%s := %s\n' "$1" "$2" >>"$new"; }
# try NAME "flags" "libs" <<< source : compiles and links a probe
try() { cat >"$dir/p.c"; ${CC:-cc} -o "$dir/p" $1 "$dir/p.c" $2 >"$dir/log" 2>&1; }
# need NAME PACKAGE "flags" "libs" : probes for a part that the build requires
need() {
    if try "$3" "$4"; then cpp="$cpp $3" libs="$libs $4"; say "$1" "yes: ${4:-headers}${3:+, $3}"
    else missing="$missing $2"; say "$1" "MISSING: $(head -n 1 "$dir/log")"; fi
}
pc() { pkg-config "$@" 2>/dev/null; }

# The Makefile refuses other settings than these in this build folder.
set_mk PROBED_WEFT_CUDA "${WEFT_CUDA:-auto}"; set_mk PROBED_WEFT_CUDA_ARCHS "${WEFT_CUDA_ARCHS:-80 90+PTX}"; set_mk PROBED_WEFT_HDF5 "${WEFT_HDF5:-static}"
for place in ONEDNN_ROOT CUDA_HOME CUDNN_HOME NCCL_HOME; do set_mk PROBED_$place "${!place:-}"; done
say weft "$(cat VERSION 2>/dev/null)"
say compiler "$(${CC:-cc} --version | head -n 1)"
if try -Oz "" <<<'int main(void) { return 0; }'; then set_mk SIZE_LEVEL -Oz; say size "-Oz for what is read and planned once"
else set_mk SIZE_LEVEL -Os; say size "-Os for what is read and planned once: this compiler has no -Oz"; fi
need mpi libopenmpi-dev "$(mpicc --showme:compile 2>/dev/null || pc --cflags ompi-c)" \
    "$(mpicc --showme:link 2>/dev/null || pc --libs ompi-c)" <<<'#include <mpi.h>
int main(int c, char **v) { return MPI_Init(&c, &v); }'
case $(mpirun --version 2>/dev/null | head -n 1) in
    *"(Open MPI) 4."*) set_mk HAVE_OPEN_MPI_4 1; say bundle "yes: Open MPI 4 can be packed";;
    *) say bundle "no: only Open MPI 4 can be packed, and mpirun is not of it";;
esac
need hdf5 libhdf5-dev "$(pc --cflags hdf5-serial hdf5 || pc --cflags hdf5-serial || pc --cflags hdf5)" \
    "$(pc --libs hdf5-serial || pc --libs hdf5 || echo -lhdf5)" <<<'#include <hdf5.h>
int main(void) { return H5open(); }'
# HDF5 is linked statically where it can be: Debian's shared library needs 36 others, which take half of the time of a start
# (docs/decisions/0067). WEFT_HDF5=shared links the shared library.
hdf5_static=
for more in "" "-l:libsz.a -l:libaec.a" "-lsz" "-lsz -lcrypto -lcurl"; do
    [ "${WEFT_HDF5:-}" != shared ] || break
    if try "$cpp" "${libs//-lhdf5/-l:libhdf5.a} $more -lz -ldl -lm" <<<'#include <hdf5.h>
int main(void) { return H5open(); }'; then hdf5_static="-l:libhdf5.a${more:+ $more}"; break; fi
done
set_mk HDF5_SHARED "$(pc --libs-only-L hdf5-serial || pc --libs-only-L hdf5) -lhdf5"
if [ -n "$hdf5_static" ]; then
    libs=${libs//-lhdf5/$hdf5_static}
    set_mk HDF5_STATIC "$hdf5_static"
    # filter plug-ins call HDF5's functions in the program
    set_mk EXPORT_HDF5 "-Wl,--dynamic-list=tools/hdf5_symbols.list"
    say hdf5.a "yes: $hdf5_static"
elif [ "${WEFT_HDF5:-}" = shared ]; then say hdf5.a "no: WEFT_HDF5=shared"
else say hdf5.a "no: each start loads the shared library and all that it needs, and a bundle contains them"
fi
# A bundle's program contains libraries, too, that have more than weft uses, or are small.
bundle_static=
for l in jpeg webp yaml xxhash cunit; do
    try "" "-l:lib$l.a" <<<'int main(void) { return 0; }' && bundle_static="$bundle_static $l"
done
set_mk BUNDLE_STATIC "$bundle_static"
if [ -n "${ONEDNN_ROOT:-}" ]; then
    lib=$ONEDNN_ROOT/lib; [ -d "$lib" ] || lib=$ONEDNN_ROOT/lib64
    need onednn libdnnl-dev "-isystem $ONEDNN_ROOT/include" "-L$lib -Wl,-rpath,$lib -ldnnl"
else
    need onednn libdnnl-dev "" "-ldnnl"
fi <<<'#include <dnnl.h>
int main(void) { return dnnl_version()->major < 2; }'
need yaml libyaml-dev "" "-lyaml" <<<'#include <yaml.h>
int main(void) { yaml_parser_t p; return !yaml_parser_initialize(&p); }'
need xxhash libxxhash-dev "" "-lxxhash" <<<'#include <xxhash.h>
int main(void) { return (int)(XXH64("", 0, 0) ^ XXH3_64bits("", 0)); }'
need zlib zlib1g-dev "" "-lz" <<<'#include <zlib.h>
int main(void) { return zlibVersion() == 0; }'
# Open MPI's package brings it along.
need hwloc libhwloc-dev "$(pc --cflags hwloc)" "$(pc --libs hwloc || echo -lhwloc)" <<<'#include <hwloc.h>
int main(void) { hwloc_topology_t t; return hwloc_topology_init(&t); }'
# Formats of pictures, each optional: format NAME PACKAGE LIBRARY "libs"; a missing one is named when a picture needs it.
formats= no_formats=
format() {
    if try "" "$4"; then formats="$formats $1" libs="$libs $4"; say "$1" "yes: $4 ($3)"
    else no_formats="$no_formats $1"; say "$1" "no: pictures in it are refused; $3 is missing (Debian: $2): $(head -n 1 "$dir/log")"; fi
}
format jpeg libjpeg62-turbo-dev libjpeg-turbo "-ljpeg" <<<'#include <stdio.h>
#include <jpeglib.h>
#ifndef LIBJPEG_TURBO_VERSION
#error libjpeg, but not libjpeg-turbo
#endif
int main(void) { struct jpeg_error_mgr e; return !jpeg_std_error(&e); }'
format png libspng-dev libspng "-lspng" <<<'#include <spng.h>
int main(void) { return !spng_version_string(); }'
format webp libwebp-dev libwebp "-lwebp" <<<'#include <webp/decode.h>
int main(void) { return !WebPGetDecoderVersion(); }'
set_mk IMAGE_FORMATS "$formats"; set_mk IMAGE_ABSENT "$no_formats"
try "" "-lcunit" <<<'#include <CUnit/Basic.h>
int main(void) { return CU_initialize_registry(); }' && say cunit "yes: -lcunit (tests only)" || say cunit "no: the tests need libcunit1-dev"

openmp=-fopenmp note=
if ${CC:-cc} --version | grep -q clang; then   # oneDNN uses libgomp: the process then has one OpenMP runtime
    openmp="-fopenmp=libgomp"
    note=" (clang makes no parallel code for it: weft's own kernels use one thread a rank; gcc's build uses all)"
fi
if try "$openmp" "" <<<'#include <omp.h>
int main(void) { return omp_get_max_threads() < 1; }'; then say openmp "yes: $openmp$note"
else
    openmp=-fopenmp-simd libs="$libs -lgomp"
    say openmp "MISSING: $(head -n 1 "$dir/log")"; missing="$missing libgomp"
fi

isas=base
case $(uname -m) in x86_64)
    for isa in avx2 avx512; do
        case $isa in avx2) f="-mavx2 -mfma";; avx512) f="-mavx512f -mavx512bw -mavx512dq -mavx512vl";; esac
        if try "$f" "" <<<'int main(void) { return 0; }'; then isas="$isas $isa"; fi
    done;;
esac
say simd "kernels for: $isas (the best one is taken at start)"
grep -qw avx512bw /proc/cpuinfo 2>/dev/null && set_mk HAVE_AVX512 1
if try "-fuse-ld=gold" "" <<<'int main(void) { return 0; }'; then set_mk HAVE_GOLD 1; say linker "gold for test programs"
else say linker "the compiler's for test programs: there is no gold"; fi

cuda= nvcc=
for d in "${CUDA_HOME:-}" /usr/local/cuda /usr; do [ -n "$d" ] && [ -x "$d/bin/nvcc" ] && { cuda=$d nvcc=$d/bin/nvcc; break; }; done
if [ "${WEFT_CUDA:-auto}" = no ]; then say cuda "no: WEFT_CUDA=no"; set_mk HAVE_CUDA 0
elif [ -z "$cuda" ]; then say cuda "no: no nvcc in \$CUDA_HOME, /usr/local/cuda or /usr"; set_mk HAVE_CUDA 0
else
    nccl=${NCCL_HOME:-$cuda} dnn=${CUDNN_HOME:-$cuda} lib=$cuda/lib64; [ -d "$lib" ] || lib=$cuda/lib
    # cuBLAS, cuDNN and NCCL are loaded when a GPU is requested: linking them would add 80 ms to the start of every run.
    cf="-isystem $cuda/include -isystem $nccl/include -isystem $dnn/include"
    cl="-L$lib -Wl,-rpath,$lib -Wl,-rpath,$nccl/lib -Wl,-rpath,$dnn/lib -lcudart_static -ldl -lrt -lpthread -lstdc++"
    if try "$cf" "-L$nccl/lib -L$dnn/lib $cl -lcublasLt -lcudnn -lnccl" <<<'#include <cublasLt.h>
#include <cudnn.h>
#include <cuda_runtime.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>
int main(void) { int n, v; cublasLtHandle_t h; return cudaGetDeviceCount(&n) || ncclGetVersion(&v) || cublasLtCreate(&h) || cudnnGetVersion(); }'
    then
        set_mk HAVE_CUDA 1; set_mk NVCC "$nvcc"
        release=$("$nvcc" --version | sed -n 's/.*release \([0-9.]*\).*/\1/p')
        # Kernels are translated to PTX once, for the oldest of them, which is a quarter of nvcc's time less than once for each.
        # With +PTX they contain this PTX, which the driver translates for later GPUs.
        archs=${WEFT_CUDA_ARCHS:-80 90+PTX} code= oldest= ptx=
        for a in $archs; do
            case $a in *+PTX) ptx=yes a=${a%+PTX};; esac
            case $a in *[!0-9]*|'') echo "weft: WEFT_CUDA_ARCHS=$archs: expected compute capabilities, as in '80 90+PTX'" >&2; exit 1;; esac
            code="${code}${code:+,}sm_$a"
            [ "${oldest:-$a}" -lt "$a" ] || oldest=$a
        done
        arch="-gencode arch=compute_$oldest,code=[$code${ptx:+,compute_$oldest}]"
        # Every driver for CUDA 13 supports the strongest compression of kernels: 1 MB instead of 5 in each program.
        [ "${release%%.*}" -ge 13 ] && arch="$arch -compress-mode=size"
        set_mk NVCC_ARCH "$arch"
        set_mk CUBLAS_MAJOR "$(sed -n 's/^#define CUBLAS_VER_MAJOR //p' "$cuda/include/cublas_api.h")"
        set_mk CUDNN_MAJOR "$(sed -n 's/^#define CUDNN_MAJOR //p' "$dnn/include/cudnn_version.h")"
        cpp="$cpp $cf" libs="$libs $cl"
        say cuda "yes: $nvcc ($release) for compute capabilities $archs, cuBLAS, cuDNN and NCCL are loaded when needed"
    else say cuda "no: $nvcc is there, but a probe with cuBLAS, cuDNN and NCCL fails: $(head -n 1 "$dir/log")"; set_mk HAVE_CUDA 0; fi
fi
set_mk OPENMP "$openmp"; set_mk SIMD_ISAS "$isas"; set_mk DEPS_CPPFLAGS "$cpp"; set_mk DEPS_LIBS "$libs"
if [ -n "$missing" ]; then
    cat "$txt" >&2
    echo "weft: missing:$missing. 'make deps' installs them." >&2; exit 1
fi
mv "$txt" "${out%.mk}.txt"
mv "$new" "$out"
