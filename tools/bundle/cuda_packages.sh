# Finds CUDA's libraries in the packages of Python, as PyTorch installs them: nvidia/*/lib in its site-packages. Sourced by a bundle's
# env.sh and by bench/gpu.sh.

# Tells whether the library NAME is in a folder of LD_LIBRARY_PATH, or found by the system's loader.
cuda_has() ( # NAME
    IFS=:
    for folder in ${LD_LIBRARY_PATH-}; do
        if [ -e "$folder/$1" ]; then exit 0; fi
    done
    "$(command -v ldconfig || echo /sbin/ldconfig)" -p 2>/dev/null | grep -qF "$1 "
)
# Prints the packages' folders, FOLDER:FOLDER..., or nothing. PYTHON: the Python to use (python3).
cuda_package_folders() {
    "${PYTHON:-python3}" -c 'import glob, sysconfig
paths = sysconfig.get_paths()
print(":".join(f for p in sorted({paths["purelib"], paths["platlib"]}) for f in sorted(glob.glob(p + "/nvidia/*/lib"))))' 2>/dev/null
}
# Does the same, but prints nothing if all the libraries are found without the packages.
cuda_packages() ( # LIBRARY...
    for library in "$@"; do
        if cuda_has "$library"; then continue; fi
        cuda_package_folders
        exit 0
    done
)
