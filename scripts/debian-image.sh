#!/usr/bin/env bash
# A Debian image at a Docker engine that reaches no registry: the base of `agentcore sandbox build` in tests.
#
#   debian-image.sh NAME:TAG     idempotent: make it with debootstrap and import it, unless it is there
#
# Needs: Linux, root, debootstrap, curl, tar, and DOCKER_HOST=unix://... Takes one to three minutes.
set -euo pipefail
IMAGE=${1:?usage: debian-image.sh NAME:TAG}
case ${DOCKER_HOST:?set DOCKER_HOST to the address of the engine} in
  unix://*) SOCKET=${DOCKER_HOST#unix://} ;;
  *) echo "DOCKER_HOST has to be unix://..., not $DOCKER_HOST" >&2; exit 1 ;;
esac
api() { local path=$1; shift; curl -fsS --unix-socket "$SOCKET" "$@" "http://engine$path"; }
if api "/images/$IMAGE/json" -o /dev/null 2>/dev/null; then exit 0; fi
ROOT=$(mktemp -d)
trap 'rm -rf "$ROOT"' EXIT
debootstrap --variant=minbase bookworm "$ROOT" >&2
rm -rf "$ROOT"/var/cache/apt/archives/*.deb "$ROOT"/var/lib/apt/lists/* "$ROOT"/usr/share/{doc,man,locale}/*
: > "$ROOT/etc/resolv.conf"
tar -C "$ROOT" --numeric-owner -c . | api "/images/create?fromSrc=-&repo=${IMAGE%:*}&tag=${IMAGE##*:}&changes=CMD%20%5B%22bash%22%5D" \
  -X POST -H 'Content-Type: application/x-tar' -T - >/dev/null
