# Finds the libraries of a bundle's programs, wherever the folder is: sourced by its scripts, which set $bundle. CUDA's libraries are
# searched for in LD_LIBRARY_PATH, then in $CUDA_HOME (default /usr/local/cuda), then in the packages of Python.
case :${PATH-}: in *":$bundle/bin:"*) ;; *) PATH=$bundle/bin:${PATH-/usr/bin:/bin};; esac
case :${LD_LIBRARY_PATH-}: in
    *":$bundle/lib:"*) ;;
    *)
        LD_LIBRARY_PATH=$bundle/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}:${CUDA_HOME:-/usr/local/cuda}/lib64
        . "$bundle/cuda_packages.sh"
        cuda_folders=$(cuda_packages $(cat "$bundle/cuda_libraries"))
        LD_LIBRARY_PATH=$LD_LIBRARY_PATH${cuda_folders:+:$cuda_folders}
        ;;
esac
OPAL_PREFIX=$bundle OPAL_BINDIR=$bundle/bin OPAL_LIBDIR=$bundle/lib OPAL_PKGLIBDIR=$bundle/lib/openmpi
OPAL_DATADIR=$bundle/share OPAL_PKGDATADIR=$bundle/share/openmpi OPAL_SYSCONFDIR=$bundle/etc
PMIX_PREFIX=$bundle PMIX_PKGLIBDIR=$bundle/lib/pmix PMIX_PKGDATADIR=$bundle/share/pmix PMIX_SYSCONFDIR=$bundle/etc
HWLOC_PLUGINS_PATH=$bundle/lib/hwloc # none: the machine's own are not for this libhwloc
export PATH LD_LIBRARY_PATH OPAL_PREFIX OPAL_BINDIR OPAL_LIBDIR OPAL_PKGLIBDIR OPAL_DATADIR OPAL_PKGDATADIR OPAL_SYSCONFDIR \
    PMIX_PREFIX PMIX_PKGLIBDIR PMIX_PKGDATADIR PMIX_SYSCONFDIR HWLOC_PLUGINS_PATH
