#!/usr/bin/env bash
# Installs missing packages through apt, without questions; on other systems prints the packages' names. Prints nothing if nothing is
# missing.
set -eu
debian="gcc make pkg-config libopenmpi-dev openmpi-bin libhdf5-dev hdf5-tools libdnnl-dev libcunit1-dev libyaml-dev
libxxhash-dev zlib1g-dev libhwloc-dev libjpeg62-turbo-dev libspng-dev libwebp-dev procps clang-format dataset-fashion-mnist bible-kjv"
if command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; then
    missing=
    for p in $debian; do
        dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
    done
    [ -z "$missing" ] && exit 0
    root=; [ "$(id -u)" = 0 ] || root="sudo -n"
    echo "installing:$missing"
    if ! { $root apt-get update -qq && DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $missing >/dev/null; }; then
        echo "weft: could not install:$missing. As root: apt-get install$missing" >&2; exit 1
    fi
    exit 0
fi
cat <<TEXT
This is not a Debian system; install these with its own package manager:
  Fedora, RHEL (EPEL)  gcc make pkgconf openmpi-devel hdf5-devel onednn-devel CUnit-devel libyaml-devel xxhash-devel zlib-devel hwloc-devel libjpeg-turbo-devel libspng-devel libwebp-devel
  openSUSE             gcc make pkgconf openmpi4-devel hdf5-devel onednn-devel cunit-devel libyaml-devel xxhash-devel zlib-devel hwloc-devel libjpeg-turbo-devel libspng-devel libwebp-devel
  Arch                 gcc make pkgconf openmpi hdf5 onednn cunit libyaml xxhash zlib hwloc libjpeg-turbo libspng libwebp
  Spack                openmpi hdf5~mpi onednn cunit libyaml xxhash zlib hwloc libjpeg-turbo libspng libwebp
Fashion-MNIST's four files go to datasets/fashion-mnist/raw (Debian packages them as dataset-fashion-mnist). The text of
`make demo-text` is any text file: KJV_TEXT=FILE (Debian's bible-kjv prints the one that is meant).
TEXT
