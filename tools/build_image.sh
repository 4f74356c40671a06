#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the container image without a container engine, by umoci:
#
#     tools/build_image.sh BUILD [FOLDER]
#
# FOLDER (default BUILD/image) becomes an OCI layout with the image "tranche": BUILD/tranche, the
# shared libraries that it needs, certificates, two users (deploy/image) and the licences; no
# shell, no package manager. The same files give the same bytes: times are $SOURCE_DATE_EPOCH, by
# default that of the last commit. libnvidia-ml.so.1 is not in it: the NVIDIA runtime adds it.
#
#     skopeo copy oci:BUILD/image:tranche docker://REPOSITORY:TAG       to a registry
#     skopeo copy oci:BUILD/image:tranche oci-archive:tranche.tar       for ctr or podman
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)

fail() {
    echo "build_image: $*" >&2
    exit 4
}

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: build_image.sh BUILD [FOLDER]" >&2
    exit 2
fi
program=$1/tranche
folder=${2:-$1/image}
[ -x "$program" ] || fail "no $program: build it first (make)"
command -v umoci >/dev/null || fail "umoci is needed; install it with: apt-get install umoci"
epoch=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 0)}
created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
version=$("$program" --version | sed 's/^[^0-9]*//')

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
files=$work/root
# Every folder that something is mounted on, as the root file system is read-only.
mkdir -p "$files"/{dev,proc,sys,run/tranche,tmp,etc/ssl/certs,usr/bin,usr/lib64,usr/share/doc/tranche,var/run/cdi}
ln -s usr/lib "$files/lib"
ln -s usr/lib64 "$files/lib64"
ln -s usr/bin "$files/bin"
cp "$root/deploy/image/passwd" "$root/deploy/image/group" "$files/etc/"
cp "$root/LICENSE" "$files/usr/share/doc/tranche/"
strip -o "$files/usr/bin/tranche" "$program"
[ ! -r /etc/ssl/certs/ca-certificates.crt ] || cp -L /etc/ssl/certs/ca-certificates.crt "$files/etc/ssl/certs/"

# "name => path (address)", or "path (address)" of the loader.
mapfile -t libraries < <(ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }' | sort -u)
[ ${#libraries[@]} -gt 1 ] || fail "ldd finds no libraries of $program"
! ldd "$program" | grep 'not found' >&2 || fail "$program lacks libraries"
for library in "${libraries[@]}"; do
    # Where merged /usr has it: /lib and /lib64 are links.
    path=$(realpath "$(dirname "$library")")/$(basename "$library")
    mkdir -p "$files$(dirname "$path")"
    cp -L "$library" "$files$path"
    package=$(dpkg-query -S "$(realpath "$library")" 2>/dev/null | head -n 1 | cut -d: -f1) || package=
    if [ -n "$package" ] && [ -r "/usr/share/doc/$package/copyright" ]; then
        mkdir -p "$files/usr/share/doc/$package"
        cp -L "/usr/share/doc/$package/copyright" "$files/usr/share/doc/$package/"
    fi
done
find "$files" -type d -exec chmod 755 {} +
find "$files" -type f -exec chmod 644 {} +
chmod 755 "$files/usr/bin/tranche" "$files"/usr/lib64/ld-linux* 2>/dev/null || chmod 755 "$files/usr/bin/tranche"
chmod 1777 "$files/tmp"
find "$files" -exec touch --no-dereference -d "@$epoch" {} +

rootless=()
[ "$(id -u)" = 0 ] || rootless=(--rootless)
image=$work/image
umoci init --layout "$image"
umoci new --image "$image:tranche"
umoci insert "${rootless[@]}" --image "$image:tranche" --history.created "$created" \
    --history.created_by "tools/build_image.sh" "$files" /
umoci config --image "$image:tranche" --created "$created" --history.created "$created" \
    --config.entrypoint /usr/bin/tranche --config.cmd help --config.user 65532:65532 --config.workingdir / \
    --config.env PATH=/usr/bin --config.exposedports 8080/tcp --config.exposedports 9465/tcp \
    --config.label "org.opencontainers.image.title=tranche" \
    --config.label "org.opencontainers.image.version=$version" \
    --config.label "org.opencontainers.image.licenses=Apache-2.0" \
    --config.label "org.opencontainers.image.created=$created"
umoci gc --layout "$image"
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
mv "$image" "$folder"
echo "build_image: $folder: tranche $version, ${#libraries[@]} libraries, $(du -sh --apparent-size "$files" | cut -f1) unpacked, $(du -sh --apparent-size "$folder" | cut -f1) packed" >&2
