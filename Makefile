# weft: one Makefile, non-recursive. `make help` lists the targets, `make info` every build decision and why.
ifeq ($(origin CC),default)
CC := gcc
endif
Q := $(if $(V),,@)# V=1 shows every command
PREFIX ?= /usr/local
BUILD ?= build
# Modules in order: a module may include the public headers of those before it (`make check-includes` checks).
MODULES := base config image detect tensor layers optim data model schedule parallel topo pipeline machine table checkpoint observe report train doctor cli
VERSION := $(shell cat VERSION)
NPROC := $(shell nproc 2>/dev/null || echo 2)

# Every decision is made by tools/probe.sh, by compiling a probe, and kept in probe.mk with its reason.
PROBE := $(BUILD)/probe.mk
SETTINGS := WEFT_CUDA WEFT_CUDA_ARCHS WEFT_HDF5 ONEDNN_ROOT CUDA_HOME CUDNN_HOME NCCL_HOME# from the environment, for tools/probe.sh
# These need no decision, or call make again once what it is about is installed.
NO_PROBE := deps clean format check-format check-includes check-words check-maps mutants help test demo demo-text demo-images demo-ctr demo-detect demo-fields asan asan-quick asan-quick-build
ifneq ($(filter-out $(NO_PROBE),$(or $(MAKECMDGOALS),weft)),)
include $(PROBE)
# A setting that is given again must be the one with which this folder's objects were made.
CHANGED := $(strip $(foreach v,$(SETTINGS),$(if $($v),$(if $(subst <$($v)>,,<$(PROBED_$v)>),$v))))
$(if $(and $(PROBED_WEFT_CUDA),$(CHANGED)),$(error $(CHANGED): $(BUILD) was made with another value: `make clean` first, or give a new folder with BUILD=))
endif

SIMD_SRC := $(sort $(wildcard src/tensor/cpu/simd/*.c))
SIMD_BF16_SRC := $(filter-out %/flat.c %/dropout.c %/matrix.c %/winograd.c %/first_conv.c %/conv_weight.c %/depthwise.c %/dense.c %/dense_few.c,$(SIMD_SRC))# those work on fp32 only
CUDA_C := $(sort $(wildcard src/tensor/cuda/*.c src/tensor/cuda/*/*.c src/parallel/nccl/*.c))
SRC := $(sort $(filter-out $(CUDA_C) $(SIMD_SRC),$(foreach m,$(MODULES),$(wildcard src/$(m)/*.c src/$(m)/*/*.c src/$(m)/*/*/*.c))))
CUDA_CU := $(sort $(wildcard src/tensor/cuda/*.cu src/tensor/cuda/*/*.cu))
CUDA_CUH := $(sort $(wildcard src/tensor/cuda/*.cuh src/tensor/cuda/*/*.cuh))
ifeq ($(HAVE_CUDA),1)
SRC := $(filter-out %/cuda_absent.c %/nccl_absent.c,$(SRC)) $(CUDA_C)
CU_OBJ := $(CUDA_CU:%.cu=$(BUILD)/obj/%.cu.o)
endif

SRC := $(filter-out $(foreach f,$(IMAGE_FORMATS),src/image/$(f)_absent.c) $(foreach f,$(IMAGE_ABSENT),src/image/$(f).c),$(SRC))

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wno-unknown-pragmas
WERROR ?= -Werror
# -g1 has functions and lines, for backtraces; a debugger wants OPT="-O0 -g". With -g, half of a test's time to link goes into debug information.
OPT ?= -O2 -g1
# Debuggers have .debug_frame, and nothing else unwinds: tables for it at run time would be 0.16 MB of the program.
UNWIND := -fno-asynchronous-unwind-tables
FP := -fno-math-errno -fno-trapping-math -ffp-contract=off
CPPFLAGS_ALL := -D_GNU_SOURCE -DWEFT_VERSION='"$(VERSION)"' -Iinclude $(DEPS_CPPFLAGS) $(CPPFLAGS)
comma := ,
CFLAGS_ALL := -std=c17 $(OPT) $(FP) $(if $(SANITIZE),,$(UNWIND)) $(OPENMP) $(WARN) $(WERROR) -fvisibility=hidden $(if $(SANITIZE),,-ffunction-sections -fdata-sections) $(SANITIZE) $(CFLAGS)
LDFLAGS_ALL := -Wl,--build-id,--as-needed $(if $(SANITIZE),,-Wl$(comma)--gc-sections) $(OPENMP) $(SANITIZE) $(LDFLAGS)
LDLIBS_ALL := $(DEPS_LIBS) $(LDLIBS) -lpthread -lm

# The vector kernels are compiled once for each instruction set and type of activations; the best that this CPU has is taken
# at start. Sanitizers take twice as long to compile what -O3 unrolls.
# Where there are wider sets, base is the last resort: it is kept small.
SMALL := $(if $(SANITIZE),-O0,$(SIZE_LEVEL))
SIMD_FLAGS_base := $(if $(filter-out base,$(SIMD_ISAS)),$(SMALL))
SIMD_FLAGS_avx2 := -mavx2 -mfma
# Under sanitizers, code that this processor cannot run is compiled in a third of the time.
SIMD_FLAGS_avx512 := $(if $(SANITIZE),$(if $(HAVE_AVX512),,-O0)) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -mprefer-vector-width=512
SIMD_BF16_FLAGS_avx512 := -mavx512bf16
# bf16 is refused where the processor cannot multiply it. Pools of narrow planes use these vectors.
SIMD_NARROW_SRC := table element pool max_pool max_pool_grad
SIMD_BF16_FLAGS_avx2 := $(SMALL)
SIMD_OBJ := $(foreach isa,$(SIMD_ISAS),$(SIMD_SRC:%.c=$(BUILD)/obj/%.$(isa).o)) \
    $(if $(filter avx512,$(SIMD_ISAS)),$(SIMD_BF16_SRC:%.c=$(BUILD)/obj/%.avx512_bf16.o) $(SIMD_NARROW_SRC:%=$(BUILD)/obj/src/tensor/cpu/simd/%.avx2_bf16.o))

# Code that runs only at a start, and calls on behalf of GPUs, are compiled for size: a bundle stays below 60 MB.
COLD := config layers model schedule tensor/cuda parallel/mpi parallel/nccl parallel/watch parallel/world topo pipeline machine checkpoint observe report train doctor cli
COLD_FILES := $(filter-out %/half.c %/row_store.c %/sliced.c,$(wildcard src/tensor/*.c)) $(wildcard src/data/*/import_*.c src/data/*/make_*.c src/data/import/*.c src/data/boxes/*.c) \
    $(foreach f,csv/csv_input csv/csv_schema csv/table_file fields/netcdf_write flow/flow_make folder/folder_classes folder/folder_list folder/folder_scan folder/yaml_classes import/part_file \
    set/boxes set/class_map set/class_names set/columns set/facts set/facts_answer set/files set/hdf5 set/hdf5_attribute set/hdf5_storage set/labels set/range set/set set/set_print \
    tokens/npy tokens/token_file tokens/tokenizer_identity tokens/tokenizer_read,src/data/$(f).c)
$(foreach m,$(COLD),$(BUILD)/obj/src/$(m)/%.o) $(COLD_FILES:%.c=$(BUILD)/obj/%.o): SIZE_FLAGS := $(if $(filter -O2,$(OPT)),$(SIZE_LEVEL))

OBJ := $(SRC:%.c=$(BUILD)/obj/%.o)
module_obj = $(filter $(BUILD)/obj/src/$(1)/%,$(OBJ) $(SIMD_OBJ) $(CU_OBJ))
LIBS := $(foreach m,$(MODULES),$(BUILD)/lib/$(m).a)
# Archives a module's tests link: its own and those above it, lowest last.
upto = $(if $(filter $(1),$(firstword $(2))),$(firstword $(2)),$(firstword $(2)) $(call upto,$(1),$(wordlist 2,99,$(2))))
reverse = $(if $(1),$(call reverse,$(wordlist 2,99,$(1))) $(firstword $(1)))
module_libs = $(patsubst %,$(BUILD)/lib/%.a,$(call reverse,$(call upto,$(1),$(MODULES))))

# The same cases on 2 and 3 ranks, and sums on 8, are in every check, those on more ranks in `make sums`.
MORE_RANKS := tests/parallel/test_sums_any_np7.c $(foreach n,4 6 8,tests/parallel/test_shard_np$(n).c) $(foreach n,4 6,tests/parallel/test_sum_np$(n).c)
TEST_SRC := $(filter-out $(MORE_RANKS),$(sort $(foreach m,$(MODULES),$(wildcard tests/$(m)/test_*.c))))
# LEAVE_OUT: patterns of programs that are not run.
TEST_BIN := $(filter-out $(LEAVE_OUT),$(TEST_SRC:tests/%.c=$(BUILD)/tests/%))
# Each with all files of its corpus, once (make fuzz goes on from them).
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
TEST_BIN += $(FUZZ:%=$(BUILD)/tests/fuzz/replay_%)
# The longest first, so that at the end none of them runs alone.
LONG_CLI := $(patsubst %,tests/cli/%.sh,async comm_death sync_batch_norm run start sbatch time tables how_to signals stale docs saves)
TEST_CLI := $(LONG_CLI) $(filter-out $(LONG_CLI),$(sort $(wildcard tests/cli/*.sh)))
TEST_BUNDLE := tests/bundle/alone.sh
NVTX_TOOL := $(if $(filter 1,$(HAVE_CUDA)),$(BUILD)/tests/cuda/nvtx_tool.so)
CLOCK_TOOL := $(if $(filter 1,$(HAVE_CUDA)),$(BUILD)/tests/cuda/clock_tool.so)

.PHONY: weft help deps info docs check-includes format check-format test check matrix asan asan-quick asan-quick-build check-cuda check-cuda-sanitizer check-cuda-emulated check-cuda-emulated-build bundle check-bundle demo demo-text demo-images demo-ctr demo-detect demo-fields data data-text data-scenes install clean tests bench cluster crash soak soak-tables sums
weft: $(BUILD)/weft       ## build it: build/weft

$(BUILD)/weft: $(LIBS) $(BUILD)/obj/src/main.o
	@echo "  link $@"
	@tools/check_rows.sh $(LIBS)
	$(Q)$(LINK) -o $@ $(BUILD)/obj/src/main.o $(call reverse,$(LIBS)) $(EXPORT_HDF5) $(LDFLAGS_ALL) $(LDLIBS_ALL)

LINK = $(CC)
# Some 180 test programs are linked: gold takes half the time of ld.
TEST_LINK := $(if $(HAVE_GOLD),-fuse-ld=gold)

define module_rule
$(BUILD)/lib/$(1).a: $(call module_obj,$(1))
	@mkdir -p $$(@D); rm -f $$@; ar rcs $$@ $$^
tests-$(1): $(patsubst tests/%.c,$(BUILD)/tests/%,$(filter tests/$(1)/%,$(TEST_SRC)))
	@tests/run.sh $$^
.PHONY: tests-$(1)
endef
$(foreach m,$(MODULES),$(eval $(call module_rule,$(m))))

$(BUILD)/obj/%.o: %.c $(PROBE)
	@mkdir -p $(@D)
	@echo "  cc   $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) $(SIZE_FLAGS) -MMD -MP -c -o $@ $<
# With sanitizers products are half the time of tests that train, unless they are optimised.
define simd_rule
$(BUILD)/obj/src/tensor/cpu/simd/%.$(1)$(2).o: src/tensor/cpu/simd/%.c $(PROBE)
	@mkdir -p $$(@D)
	@echo "  cc   $$< ($(1)$(2))"
	$$(Q)$(CC) $(CPPFLAGS_ALL) -DSIMD_ISA=$(1) -DSIMD_$(1) $(CFLAGS_ALL) $(if $(SANITIZE),$$(if $$(filter dense matrix,$$*),-O2),-O3) -ffp-contract=fast -fno-signed-zeros \
	    $(SIMD_FLAGS_$(1)) $(3) -MMD -MP -c -o $$@ $$<
endef
$(foreach isa,$(SIMD_ISAS),$(eval $(call simd_rule,$(isa),,)) $(eval $(call simd_rule,$(isa),_bf16,-DSIMD_BF16 $(SIMD_BF16_FLAGS_$(isa)))))
# Exponentials take half the instructions where numbers below 1e-38 are zeros.
$(addprefix $(BUILD)/obj/src/tensor/cuda/loss/,loss.cu.o softmax_sliced.cu.o): NVCC_FLAGS = -ftz=true
# nvcc optimises kernels for speed by default; the host's part of a file is kept small.
$(BUILD)/obj/%.cu.o: %.cu $(PROBE)
	@mkdir -p $(@D)
	@echo "  nvcc $<"
	$(Q)$(NVCC) -std=c++17 $(NVCC_ARCH) $(NVCC_FLAGS) -Iinclude -Xcompiler -Os,-Wall,-Wextra,-fno-exceptions,$(UNWIND) -MMD -MP -c -o $@ $<
# The same kernels on the CPU, for a test where there is no GPU: tests/cuda/emulate/kernel.h. Its libraries are linked, so that they are
# there before the backend asks the loader for cuBLASLt and cuDNN.
EMULATED_CXX = g++ -std=c++17 -O2 -g1 -fno-strict-aliasing -Wall -Wno-unknown-pragmas -Wno-sign-compare \
    -Iinclude -Itests/cuda/emulate $(DEPS_CPPFLAGS) -MMD -MP
# Kernels end where an address is not as aligned as its type, as on a GPU.
EMULATED_KERNEL = $(EMULATED_CXX) -fsanitize=alignment -fno-sanitize-recover=alignment -include tests/cuda/emulate/kernel.h
# A translated file finds other translated files by their relative paths; headers, which are not translated, by the path from the folder
# of its source, or from the folder of the headers of kernels.
EMULATED_HEADERS = -I$(<D) -Isrc/tensor/cuda/passes
EMULATED_OBJ = $(CUDA_CU:%.cu=$(BUILD)/emulated/%.o) $(addprefix $(BUILD)/emulated/,runtime.o stream.o devices.o)
EMULATED_H = tests/cuda/emulate/kernel.h tests/cuda/emulate/queue.h
EMULATED_LIBS = $(BUILD)/emulated/libcublasLt.so.$(CUBLAS_MAJOR) $(BUILD)/emulated/libcudnn.so.$(CUDNN_MAJOR) $(BUILD)/emulated/libnccl.so.2
EMULATE = sed -E -z -e 's/([A-Za-z_]+(<[A-Za-z_0-9, ]*>)?)[ \\\n]*<<<([^;<>]*)>>>\(/emulate::launch(\3).of(\1)(/g' \
    -e 's/extern __shared__ (\w+) (\w+)\[\];/\1 *const \2 = (\1 *)emulate::shared_memory();/g'
$(CUDA_CUH:%=$(BUILD)/emulated/%): $(BUILD)/emulated/%.cuh: %.cuh $(PROBE)
	@mkdir -p $(@D)
	$(Q)$(EMULATE) $< >$@
$(BUILD)/emulated/%.o: %.cu $(EMULATED_H) $(CUDA_CUH:%=$(BUILD)/emulated/%) $(PROBE)
	@mkdir -p $(@D)
	@echo "  emulate $<"
	$(Q)$(EMULATE) $< >$(@:.o=.cc)
	$(Q)$(EMULATED_KERNEL) $(EMULATED_HEADERS) -c -o $@ $(@:.o=.cc)
$(addprefix $(BUILD)/emulated/,runtime.o stream.o devices.o): $(BUILD)/emulated/%.o: tests/cuda/emulate/%.cc $(EMULATED_H) $(PROBE)
	@mkdir -p $(@D)
	$(Q)$(EMULATED_CXX) -c -o $@ $<
$(BUILD)/emulated/limits.o: tests/cuda/emulate/limits.cc $(EMULATED_H) $(PROBE)
	@mkdir -p $(@D)
	$(Q)$(EMULATED_KERNEL) -c -o $@ $<
$(BUILD)/emulated/libcublasLt.so.%: tests/cuda/emulate/cublaslt.cc $(EMULATED_H) $(PROBE)
	@mkdir -p $(@D)
	$(Q)$(EMULATED_CXX) -O3 -shared -fPIC -Wl,-soname,$(@F) -o $@ $<
$(BUILD)/emulated/libnccl.so.%: tests/cuda/emulate/nccl.cc $(PROBE)
	@mkdir -p $(@D)
	$(Q)$(EMULATED_CXX) -shared -fPIC -Wl,-soname,$(@F) -o $@ $< -lpthread
$(BUILD)/emulated/libcudnn.so.%: tests/cuda/emulate/cudnn.cc tests/cuda/emulate/cudnn_graph.cc tests/cuda/emulate/cudnn_graph.h $(EMULATED_H) $(PROBE)
	@mkdir -p $(@D)
	$(Q)$(EMULATED_CXX) -O3 -shared -fPIC -Wl,-soname,$(@F) -o $@ $(filter %.cc,$^)

# Tests that only check compile in a third of the time without optimisation. gcc does not know the lengths of texts then.
TEST_FLAGS := -O0 -Wno-format-truncation
# Those that compute much themselves take longer to run then.
$(addprefix $(BUILD)/tests/,parallel/% train/% checkpoint/% tensor/test_gradients tensor/test_gradients_norm tensor/test_winograd tensor/test_flat \
    tensor/test_depthwise pipeline/%): TEST_FLAGS := -Wno-format-truncation
.SECONDEXPANSION:
$(BUILD)/tests/%: tests/%.c tests/harness.h $$(call module_libs,$$(firstword $$(subst /, ,$$*)))
	@mkdir -p $(@D)
	@echo "  test $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) -Itests -Isrc $(CFLAGS_ALL) $(TEST_FLAGS) -MMD -MP -o $@ $< $(filter %.o,$^) \
	    $(call module_libs,$(firstword $(subst /, ,$*))) $(LDFLAGS_ALL) $(TEST_LINK) $(LDLIBS_ALL) -lcunit
$(BUILD)/tests/fuzz/replay_%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c tests/fuzz/fuzz.h $(LIBS)
	@mkdir -p $(@D)
	@echo "  test $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) -Isrc -DFUZZ_TARGET='"$*"' $(CFLAGS_ALL) $(TEST_FLAGS) -MMD -MP -o $@ $< tests/fuzz/replay.c \
	    $(call reverse,$(LIBS)) $(LDFLAGS_ALL) $(TEST_LINK) $(LDLIBS_ALL)
tests-fuzz: $(FUZZ:%=$(BUILD)/tests/fuzz/replay_%)
	@tests/run.sh $^
.PHONY: tests-fuzz
# With clang and libFuzzer: what parses files is built for it, the rest is linked as it is.
FUZZ_SRC := $(filter $(foreach m,base config image data schedule topo checkpoint report,src/$(m)/%),$(SRC))
FUZZ_FLAGS := -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_S ?= 3600
$(BUILD)/fuzz/obj/%.o: %.c $(PROBE)
	@mkdir -p $(@D)
	@echo "  clang $<"
	$(Q)clang -std=c17 $(CPPFLAGS_ALL) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link -Wno-everything -MMD -MP -c -o $@ $<
$(BUILD)/fuzz/fuzz_%: tests/fuzz/fuzz_%.c tests/fuzz/fuzz.h $(FUZZ_SRC:%.c=$(BUILD)/fuzz/obj/%.o) $(LIBS)
	@echo "  clang $<"
	$(Q)clang -std=c17 $(CPPFLAGS_ALL) -Isrc $(FUZZ_FLAGS) -fsanitize=fuzzer -Wl,--wrap=__sanitizer_cov_8bit_counters_init -o $@ $< $(filter %.o,$^) \
	    $(call reverse,$(LIBS)) -lgomp $(LDLIBS_ALL)
fuzz: $(FUZZ:%=$(BUILD)/fuzz/fuzz_%)   ## clang: an hour of a core for each target (FUZZ_S= seconds, FUZZ= targets)
	@tests/fuzz/fuzz.sh $(BUILD)/fuzz $(FUZZ_S) $(FUZZ)
.PHONY: fuzz
.SECONDARY: $(FUZZ_SRC:%.c=$(BUILD)/fuzz/obj/%.o)
# Made-up NVMLs, of a new driver and of an old one, which the test loads from its own folder.
$(BUILD)/tests/topo/old/libnvidia-ml.so.1: NVML_FLAGS = -DOLD_DRIVER
$(BUILD)/tests/topo/libnvidia-ml.so.1 $(BUILD)/tests/topo/old/libnvidia-ml.so.1: tests/topo/nvml.c $(PROBE)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c17 $(WARN) $(WERROR) $(NVML_FLAGS) -shared -fPIC -Wl,-soname,$(@F) -o $@ $<
$(BUILD)/tests/topo/test_devices: $(BUILD)/tests/topo/libnvidia-ml.so.1 $(BUILD)/tests/topo/old/libnvidia-ml.so.1
# A filter plug-in of HDF5, alone in its folder. Like most plug-ins it needs HDF5's shared library.
$(BUILD)/tests/data/plugins/libinverted.so: tests/data/inverted.c $(PROBE)
	@mkdir -p $(@D)
	$(Q)$(CC) $(DEPS_CPPFLAGS) -std=c17 $(WARN) $(WERROR) -shared -fPIC -o $@ $< $(HDF5_SHARED)
$(BUILD)/tests/data/test_plugin: $(BUILD)/tests/data/plugins/libinverted.so
$(BUILD)/tests/data/test_plugin: TEST_LINK += $(EXPORT_HDF5)
# test_share_np7 counts the bytes that weft reads by pread. HDF5 would call the test's pread, too, if it were in the program.
$(BUILD)/tests/checkpoint/test_share_np7: LDLIBS_ALL := $(if $(HDF5_STATIC),$(subst $(HDF5_STATIC),$(HDF5_SHARED),$(LDLIBS_ALL)),$(LDLIBS_ALL))
$(BUILD)/tests/train/test_reference: $(BUILD)/obj/tests/reference/forward.o
$(patsubst tests/%.c,$(BUILD)/tests/%,$(wildcard tests/config/test_*.c)): $(BUILD)/obj/tests/config/words.o

# Every kernel and the whole training path on a GPU against the CPU, and NCCL by itself; they link all modules.
$(addprefix $(BUILD)/tests/cuda/,test_cuda test_nccl): $(BUILD)/tests/cuda/%: tests/cuda/%.c $(wildcard tests/cuda/*.h) tests/harness.h tests/op_rig.h $(LIBS)
	@mkdir -p $(@D)
	@echo "  test $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) -Itests -Isrc $(CFLAGS_ALL) -MMD -MP -o $@ $< $(call reverse,$(LIBS)) $(LDFLAGS_ALL) $(LDLIBS_ALL) -lcunit
$(BUILD)/tests/cuda/nvtx_tool.so: tests/cuda/nvtx_tool.c $(PROBE)
	@mkdir -p $(@D)
	$(Q)$(CC) $(DEPS_CPPFLAGS) -std=c17 $(WARN) $(WERROR) -shared -fPIC -o $@ $<
$(BUILD)/tests/cuda/clock_tool.so: tests/cuda/clock_tool.c tests/wall_clock.h
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -Itests -std=c17 $(WARN) $(WERROR) -shared -fPIC -o $@ $<
check-cuda: $(addprefix $(BUILD)/tests/cuda/,test_cuda test_nccl)   ## compare the CUDA backend with the CPU's, and try NCCL, where there is a GPU
	@$< full $$(date +%s)
	@$(word 2,$^)
check-cuda-sanitizer: $(BUILD)/tests/cuda/test_cuda   ## its operations under compute-sanitizer, where there is a GPU
	@tests/cuda/sanitizer.sh $<

EMULATED_LINK = $(EMULATED_OBJ) $(call reverse,$(LIBS)) -Wl,--no-as-needed $(EMULATED_LIBS) -Wl,--as-needed \
    -Wl,-rpath,$(abspath $(BUILD)/emulated) $(LDFLAGS_ALL) $(TEST_LINK) $(LDLIBS_ALL)
$(addprefix $(BUILD)/tests/cuda/,test_cuda_emulated test_nccl_emulated): $(BUILD)/tests/cuda/%_emulated: tests/cuda/%.c $(wildcard tests/cuda/*.h) tests/harness.h tests/op_rig.h $$(EMULATED_OBJ) $$(EMULATED_LIBS) $(LIBS)
	@mkdir -p $(@D)
	@echo "  test $< (emulated)"
	$(Q)$(CC) $(CPPFLAGS_ALL) -Itests -Isrc $(CFLAGS_ALL) -MMD -MP -o $@ $< $(EMULATED_LINK) -lcunit
$(BUILD)/tests/cuda/test_limits: tests/cuda/test_limits.c tests/harness.h $$(EMULATED_OBJ) $(BUILD)/emulated/limits.o $$(EMULATED_LIBS) $(LIBS)
	@mkdir -p $(@D)
	@echo "  test $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) -Itests -Isrc $(CFLAGS_ALL) -MMD -MP -o $@ $< $(BUILD)/emulated/limits.o $(EMULATED_LINK) -lcunit
# Needs the real cuDNN and no GPU: a driver that only lets it finish its plans.
$(BUILD)/emulated/driver/libcuda.so.1: tests/cuda/emulate/driver.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(WARN) -shared -fPIC -Wl,-soname,$(@F) -o $@ $<
$(BUILD)/tests/cuda/test_cuda_plans: tests/cuda/test_cuda_plans.c tests/harness.h $(BUILD)/emulated/driver/libcuda.so.1 $(LIBS)
	@mkdir -p $(@D)
	@echo "  test $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) -Itests -Isrc $(CFLAGS_ALL) -MMD -MP -o $@ $< $(call reverse,$(LIBS)) -Wl,--no-as-needed \
	    $(BUILD)/emulated/driver/libcuda.so.1 -Wl,--as-needed -Wl,-rpath,$(abspath $(BUILD)/emulated/driver) $(LDFLAGS_ALL) $(LDLIBS_ALL) -lcunit
$(BUILD)/emulated/weft: $(BUILD)/obj/src/main.o $$(EMULATED_OBJ) $$(EMULATED_LIBS) $(LIBS)
	@echo "  link $@"
	$(Q)$(CC) -o $@ $< $(EMULATED_LINK)
# The longest first. Sanitizers leave them out: the emulated GPU changes stacks and guards its own memory.
EMULATED_TESTS := $(if $(filter 1,$(HAVE_CUDA)),$(addprefix $(BUILD)/tests/cuda/,test_cuda_emulated test_cuda_plans test_nccl_emulated test_limits))
check-cuda-emulated-build: $(if $(EMULATED_TESTS),$(EMULATED_TESTS) $(BUILD)/weft $(BUILD)/emulated/weft $(CLOCK_TOOL)) ## builds the tests of check-cuda-emulated
check-cuda-emulated: check-cuda-emulated-build   ## with nvcc: the tests of the GPU half, with kernels, cuBLASLt, cuDNN and NCCL emulated on the CPU
	@$(if $(EMULATED_TESTS),WEFT=$(BUILD)/weft WEFT_EMULATED=$(BUILD)/emulated/weft CLOCK_TOOL=$(CLOCK_TOOL) TEST_TIMES=$(BUILD)/test-times \
	    tests/run.sh $(EMULATED_TESTS) $(patsubst %,tests/cuda/%.sh,gpus tune devices lease refusals),echo "skipped: built without CUDA (make info says why)")

# A folder that runs where nothing is installed. One program is weft and its tests, so that kernels and HDF5 are in it once.
BUNDLE ?= $(BUILD)/bundle
BUNDLE_TESTS := $(sort $(wildcard tests/parallel/test_*_np*.c)) $(if $(filter 1,$(HAVE_CUDA)),tests/cuda/test_cuda.c tests/cuda/test_nccl.c)
BUNDLE_OBJ := $(BUNDLE_TESTS:%.c=$(BUILD)/programs/%.o) $(BUILD)/programs/tools/bundle/programs.o
main_of = $(subst /,_,$(1))_main
$(BUILD)/programs/programs.h: Makefile $(BUNDLE_TESTS)
	@mkdir -p $(@D)
	@printf 'PROGRAM("%s", %s)\n' $(foreach t,$(BUNDLE_TESTS:.c=),$(t) $(call main_of,$(t))) >$@
$(BUILD)/programs/tests/%.o: tests/%.c $(PROBE)
	@mkdir -p $(@D)
	@echo "  cc   $< (bundle)"
	$(Q)$(CC) $(CPPFLAGS_ALL) -Itests -Isrc $(CFLAGS_ALL) -Os -Dmain=$(call main_of,tests/$*) -Wno-missing-prototypes -MMD -MP -c -o $@ $<
$(BUILD)/programs/tools/bundle/programs.o: tools/bundle/programs.c $(BUILD)/programs/programs.h
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -Isrc -I$(BUILD)/programs $(CFLAGS_ALL) -MMD -MP -c -o $@ $<
# Libraries that a bundle links statically: those that the probe names, and HDF5. Addresses in tables are packed, which glibc 2.36 knows.
BUNDLE_ARCHIVES := $(BUNDLE_STATIC:%=-l:lib%.a) $(filter -l:libhdf5.a,$(DEPS_LIBS))
in_bundle = $(foreach l,$(1),$(if $(filter $(l),$(BUNDLE_STATIC:%=-l%)),$(l:-l%=-l:lib%.a),$(l)))
$(BUILD)/programs/weft: $(BUNDLE_OBJ) $(LIBS) tools/bundle/archives.sh
	@echo "  link $@"
	$(Q)CC="$(CC)" tools/bundle/archives.sh $(BUILD)/programs/lib "$(filter -L%,$(DEPS_LIBS))" $(BUNDLE_ARCHIVES)
	$(Q)$(LINK) -o $@ $(BUNDLE_OBJ) $(call reverse,$(LIBS)) $(LDFLAGS_ALL) -Wl,-z,pack-relative-relocs -Wl,-z,noseparate-code -L$(BUILD)/programs/lib \
	    $(call in_bundle,$(DEPS_LIBS) -lcunit) $(LDLIBS) -lpthread -lm
$(BUNDLE)/SIZES: $(BUILD)/programs/weft tools/bundle.sh tools/bundle/env.sh tools/bundle/cuda_packages.sh tests/run.sh $(wildcard jobs/*)
	@tools/bundle.sh $< $(BUNDLE) $(BUILD)/programs/lib $(BUNDLE_TESTS:.c=)
bundle: $(BUNDLE)/SIZES   ## a folder that runs where neither MPI nor HDF5 nor oneDNN is: build/bundle (BUNDLE= names another)
	@cat $<
# One file with the whole bundle, which travels with the working tree to a borrowed GPU: bench/lease.sh unpacks it there.
LEASE ?= .lease/weft.tgz
lease: $(BUNDLE)/SIZES   ## the bundle as an archive for bench/lease.sh: .lease/weft.tgz (LEASE= names another)
	@mkdir -p $(dir $(LEASE))
	@{ git describe --always --dirty 2>/dev/null || cat VERSION; } >$(BUNDLE)/COMMIT
	@tar -C $(BUNDLE) --transform 's,^\.,bundle,' -czf $(LEASE) . && ls -l $(LEASE)
.PHONY: lease
check-bundle: $(BUNDLE)/SIZES   ## does it run where nothing else is?
	@BUNDLE=$(BUNDLE) tests/run.sh $(TEST_BUNDLE)

$(PROBE): tools/probe.sh Makefile
	@mkdir -p $(@D)
	@CC="$(CC)" $(foreach v,$(SETTINGS),$v="$(or $($v),$(PROBED_$v))") tools/probe.sh $@

help:            ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22
deps:            ## install what is missing (apt), or say the packages' names
	@tools/deps.sh
info: $(PROBE)   ## every build decision and why
	@cat $(BUILD)/probe.txt
check-includes: ## includes point one way
	@tools/check_includes.sh $(MODULES)
format:          ## lay out all C with clang-format
	@git ls-files -co --exclude-standard '*.c' '*.h' '*.cu' | xargs clang-format -i
check-words:     ## comments without clipped sentences and private words (docs/glossary.md)
	@tools/check_words.sh
check-maps:      ## README.md of each folder of src has a line for every file
	@tools/check_maps.sh
.PHONY: check-words check-maps check-changed
check-format:    ## is all C laid out so?
	@git ls-files -co --exclude-standard '*.c' '*.h' '*.cu' | xargs clang-format --dry-run -Werror
	@git ls-files -co --exclude-standard '*.c' '*.h' '*.cu' '*.cuh' | grep -v '^src/config/options.c$$' | xargs awk \
	    'length > 100 { print FILENAME ":" FNR ": longer than 100 columns"; bad = 1 } END { exit bad }'
	@git ls-files -co --exclude-standard 'src/*.c' 'src/*.h' 'include/*.h' | xargs awk 'FNR == 1 { open = 0 } /^{$$/ { open = FNR } \
	    /^}/ { if (open && FNR - open > 61) { print FILENAME ":" open ": a function of more than 60 lines"; bad = 1 } open = 0 } END { exit bad }'
doc-tables: $(BUILD)/weft ## the pages of docs/ that are made of the program's tables, after a row was added
	@tools/docs/tables.sh $< docs
.PHONY: doc-tables
docs: $(BUILD)/weft       ## the pages, the man page and include/*.h as HTML: build/docs/html (needs doxygen)
	@tools/docs/docs.sh $< $(BUILD)/docs
clean:           ## remove what was built
	rm -rf $(BUILD)

bench: $(BUILD)/weft $(addprefix $(BUILD)/bench/,ops_bench rows_bench link_bench load_bench detect_bench ledger_bench sums_simulate slow_messages.so)   ## the benchmark programs of bench/
$(BUILD)/bench/%: bench/%.c $(LIBS)
	@mkdir -p $(@D)
	@echo "  cc   $<"
	$(Q)$(CC) $(CPPFLAGS_ALL) -Isrc $(CFLAGS_ALL) -o $@ $< $(filter %.o,$^) $(call reverse,$(LIBS)) $(LDFLAGS_ALL) $(LDLIBS_ALL)
$(BUILD)/bench/sums_simulate: $(BUILD)/obj/bench/sums_network.o bench/sums_network.h
$(BUILD)/bench/slow_messages.so: bench/slow_messages.c $(PROBE)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS_ALL) -std=c17 -fPIC $(WARN) $(WERROR) -shared -o $@ $<

# The test of the bundle, which make check runs without sanitizers. A bundle is made of Open MPI 4.
CHECKED_BUNDLE := $(if $(SANITIZE),,$(if $(filter 1,$(HAVE_OPEN_MPI_4)),$(TEST_BUNDLE)))
tests: $(BUILD)/weft $(BUILD)/bench/sums_simulate $(TEST_BIN) $(NVTX_TOOL) $(if $(CHECKED_BUNDLE),$(BUNDLE)/SIZES)
	@touch $(BUILD)/tests/built
test: deps       ## build and run the tests
	@$(MAKE) --no-print-directory -j$(NPROC) tests
	@$(MAKE) --no-print-directory check
check: tests      ## the tests, nothing installed
	@WEFT=$(BUILD)/weft NVTX_TOOL=$(NVTX_TOOL) BUNDLE=$(BUNDLE) \
	    TEST_TIMES=$(BUILD)/test-times tests/run.sh $(TEST_CLI) $(CHECKED_BUNDLE) $(BUILD)/bench/sums_simulate $(TEST_BIN)
check-changed:    ## in a minute: the tests of what has changed since the last commit (SINCE=COMMIT), and what that leaves out
	@MAKE="$(MAKE)" BUILD=$(BUILD) tools/check_changed.sh $(SINCE)
mutants:          ## which of 200 small changes to pipeline, parallel and checkpoint no test notices (hours; MUTATE="MODULE...")
	@MAKE="$(MAKE)" BUILD=$(BUILD) tools/mutate/mutate.sh
.PHONY: mutants
matrix: $(BUILD)/tests/train/test_grid_np4 $(BUILD)/tests/train/test_resume_grid_np4 weft  ## all models x grids x schedules x transports x threads, all pairs to resume on
	@echo "6734 runs (3626 where bf16 is refused) and 200 to resume, on up to 4 ranks; weft verify of eight models on up to 6 ranks"
	@echo "WEFT_MATRIX=gpt2,layers in the environment takes those models alone, MODELS=\"gpt llama\" those of weft verify"
	@WEFT=$(BUILD)/weft WEFT_MATRIX=$${WEFT_MATRIX:-1} TEST_TIMEOUT=14400 tests/run.sh $(filter-out weft,$^) tests/matrix/bits.sh
SUM_RANKS := 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 24 32
sums: $(MORE_RANKS:%.c=$(BUILD)/%)    ## sums, shards and pushes over 2 to 17, 24 and 32 ranks, each way (ten minutes)
	@mkdir -p $(BUILD)/sums
	@for n in $(SUM_RANKS); do ln -sf $(abspath $<) $(BUILD)/sums/test_sums_np$$n; done
	@tests/run.sh $(SUM_RANKS:%=$(BUILD)/sums/test_sums_np%) $(filter-out %_np7,$(MORE_RANKS:%.c=$(BUILD)/%))
ASAN_OPT ?= -O1 -g
asan:            ## the tests under AddressSanitizer and UndefinedBehaviorSanitizer, without CUDA
	@WEFT_CUDA=no $(MAKE) --no-print-directory -j$(NPROC) BUILD=$(BUILD)/asan OPT="$(ASAN_OPT) -fno-omit-frame-pointer" \
	    SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=undefined" $(or $(ASAN_GOAL),check)
# Tests that run the code of other tests with more ranks, or in more combinations, for the bits, and two of oneDNN's own kernels; make
# asan runs them, too. The longest, of ZeRO and mode sync on four ranks and of stages on three, reach no line that the others do not (gcov).
REPEATS := $(addprefix %/,train/test_grid_np4 train/test_zero_np4 train/test_sync_np4 train/test_reference train/test_golden_models train/test_detector_np2 \
    test_dnnl_conv test_dnnl_dense test_stages_np3 test_shard_np2 test_sum_np2 test_sum_np8 test_collect_np20 test_share_np7 train/test_groups_np4 \
    train/test_resume_grid_np4 tensor/test_threads)
asan-quick:      ## the same without the scripts of tests/cli and what repeats others on more ranks
	@$(MAKE) --no-print-directory asan TEST_CLI= LEAVE_OUT="$(REPEATS)"
asan-quick-build: ## builds the tests of asan-quick
	@$(MAKE) --no-print-directory asan-quick ASAN_GOAL=tests

crash: $(BUILD)/weft      ## a crash at every moment of many saves (needs strace; fifteen minutes)
	@WEFT=$(BUILD)/weft CC="$(CC)" TEST_TIMEOUT=2400 tests/run.sh tests/crash/crash.sh

cluster: $(BUILD)/weft    ## as root: training across hosts made on this machine, under Slurm, too (half an hour)
	@echo "three hosts for bits, two for the ledger, three for doctor, Slurm (installed if missing), jobs/hosts.sh and weft run, two for hangs and for overlap: about half an hour"
	@WEFT=$(BUILD)/weft TEST_TIMEOUT=900 TEST_JOBS=1 tests/run.sh tests/cluster/bits.sh tests/cluster/ledger.sh tests/cluster/doctor.sh tests/cluster/slurm.sh tests/cluster/hang.sh tests/cluster/run.sh tests/cluster/slurm_run.sh tests/cluster/slurm_ends.sh \
	    tests/cluster/hosts_job.sh tests/cluster/slurm_servers.sh tests/cluster/simulate.sh
	@WEFT=$(BUILD)/weft tests/cluster/overlap.sh

soak: $(BUILD)/weft       ## as root: weft run on two hosts with a fault every 20 s, MINUTES=20 and half as long again (half an hour)
	@WEFT=$(BUILD)/weft CC="$(CC)" TEST_TIMEOUT=5400 tests/run.sh tests/cluster/soak.sh

soak-tables: $(BUILD)/weft    ## a growing table up to train.memory, on one server, for SOAK_S=600 seconds and some minutes more
	@echo "clicks that drift, until a server's memory is full: about $${SOAK_S:-600} s, and as long again on a busy machine"
	@WEFT=$(BUILD)/weft TEST_TIMEOUT=5400 WEFT_TEST_VERBOSE=1 tests/run.sh tests/cluster/soak_tables.sh

data: $(BUILD)/weft       ## Fashion-MNIST as HDF5 data sets
	@tools/data.sh $(BUILD)/weft
demo: deps               ## install, build, train on Fashion-MNIST with two ranks, evaluate (DEMO="train.epochs=1" overrides)
	@$(MAKE) --no-print-directory -j$(NPROC) weft
	@$(MAKE) --no-print-directory data
	@tools/demo.sh $(BUILD)/weft $(DEMO)
data-text: $(BUILD)/weft  ## a text of 4 MB as token data sets
	@tools/text.sh $(BUILD)/weft
demo-text: deps          ## install, build, train a small GPT on a text with two ranks, let it write (DEMO overrides)
	@$(MAKE) --no-print-directory -j$(NPROC) weft
	@$(MAKE) --no-print-directory data-text
	@tools/demo_text.sh $(BUILD)/weft $(DEMO)

$(BUILD)/tools/pictures: tools/pictures.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c17 -D_GNU_SOURCE $(WARN) $(WERROR) -O2 -o $@ $< -lz
demo-images: deps        ## install, build, train on a folder of PNGs, take out half of the channels, finetune, export (DEMO overrides)
	@$(MAKE) --no-print-directory -j$(NPROC) weft $(BUILD)/tools/pictures
	@tools/demo_images.sh $(BUILD)/weft $(BUILD)/tools/pictures $(DEMO)
demo-ctr: deps           ## install, build, train wide & deep on the Adult data with a server and two ranks, then in mode geo (DEMO overrides)
	@$(MAKE) --no-print-directory -j$(NPROC) weft
	@tools/demo_ctr.sh $(BUILD)/weft $(DEMO)
data-scenes: $(BUILD)/weft ## pictures with boxes, composed of Fashion-MNIST's images
	@$(MAKE) --no-print-directory data
	@tools/scenes.sh $(BUILD)/weft
demo-detect: deps        ## install, build, train YOLOv5n on composed pictures with two ranks, evaluate it as COCO does (DEMO overrides)
	@$(MAKE) --no-print-directory -j$(NPROC) weft
	@$(MAKE) --no-print-directory data-scenes
	@tools/demo_detect.sh $(BUILD)/weft $(DEMO)

demo-fields: deps        ## install, build, make a flow, train a unet that predicts it with two ranks, integrate it (DEMO overrides)
	@$(MAKE) --no-print-directory -j$(NPROC) weft
	@tools/demo_fields.sh $(BUILD)/weft $(DEMO)

install: $(BUILD)/weft   ## PREFIX= and DESTDIR= as usual
	install -D -m 755 $(BUILD)/weft $(DESTDIR)$(PREFIX)/bin/weft
	mkdir -p $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(BUILD)/weft help --man >$(DESTDIR)$(PREFIX)/share/man/man1/weft.1
	$(BUILD)/weft help --completion >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/weft
	mkdir -p $(DESTDIR)$(PREFIX)/share/weft/jobs
	install -m 644 jobs/*.yaml jobs/*.sh $(DESTDIR)$(PREFIX)/share/weft/jobs

-include $(FUZZ_SRC:%.c=$(BUILD)/fuzz/obj/%.d) $(OBJ:.o=.d) $(EMULATED_OBJ:.o=.d) $(SIMD_OBJ:.o=.d) $(CU_OBJ:.o=.d) $(TEST_BIN:=.d) $(EMULATED_TESTS:=.d) $(BUNDLE_OBJ:.o=.d) $(BUILD)/obj/src/main.d $(BUILD)/obj/tests/reference/forward.d $(BUILD)/obj/bench/sums_network.d
