# Where the packages of a Python have CUDA's libraries, as PyTorch brings them: nvidia/*/lib in its site-packages. Sourced by a
# bundle's env.sh and by bench/gpu.sh.

# Is the library NAME in a folder of LD_LIBRARY_PATH, or where the system's loader looks?
cuda_has() ( # NAME
    IFS=:
    for folder in ${LD_LIBRARY_PATH-}; do
        if [ -e "$folder/$1" ]; then exit 0; fi
    done
    "$(command -v ldconfig || echo /sbin/ldconfig)" -p 2>/dev/null | grep -qF "$1 "
)
# Prints the packages' folders, FOLDER:FOLDER..., or nothing. PYTHON: whose packages (python3).
cuda_package_folders() {
    "${PYTHON:-python3}" -c 'import glob, sysconfig
paths = sysconfig.get_paths()
print(":".join(f for p in sorted({paths["purelib"], paths["platlib"]}) for f in sorted(glob.glob(p + "/nvidia/*/lib"))))' 2>/dev/null
}
# The same, but nothing where all the libraries are found without them.
cuda_packages() ( # LIBRARY...
    for library in "$@"; do
        if cuda_has "$library"; then continue; fi
        cuda_package_folders
        exit 0
    done
)
