#!/usr/bin/env bash
# A real Docker engine and an image for tests, without a registry. It uses the engine that answers, else it starts one.
#
#     eval "$(scripts/docker-engine.sh up)"     safe to run again; then DOCKER_HOST and TEST_IMAGE are set, as the tests want them
#
#     scripts/docker-engine.sh engine           the same without an image
#     scripts/docker-engine.sh status           what answers, and which image is there
#     scripts/docker-engine.sh down             stop the engine that this started; its containers, mounts and bridge go too
#     scripts/docker-engine.sh purge            down, then remove everything below $DOCKER_LAB
#
#     DOCKER_LAB          where all of it is              (docker-ci in the folder for temporary files)
#     DOCKER_LAB_BRIDGE   "none": no docker0; then there are the networks none and host only
#     TEST_IMAGE          the image that has to be there  (sandbox-test:1; made of Debian packages, about 120 MB)
#
# Starting one needs Linux, root, apt of Debian 12, curl, tar and xz. No package is installed on the system, no firewall rule and no sysctl touched.
set -euo pipefail
NAMED=${DOCKER_LAB:-}; LAB=${DOCKER_LAB:-${TMPDIR:-/tmp}/docker-ci}; IMAGE=${TEST_IMAGE:-sandbox-test:1}
SOCK=$LAB/docker.sock; PIDFILE=$LAB/dockerd.pid; REPO=${IMAGE%:*}; TAG=${IMAGE##*:}; CG=$(basename "$LAB")
say() { local t=$(( (${EPOCHREALTIME/[.,]/} - T0) / 100000 )); printf "[docker-engine %3d.%ds] %s\n" $((t/10)) $((t%10)) "$*" >&2; }
die() { say "ERROR: $*"; exit 1; }
T0=${EPOCHREALTIME/[.,]/}

api() { # api <path> [curl args...]   against $HOST_URL
  local p=$1; shift
  case $HOST_URL in
    unix://*) curl -fsS --unix-socket "${HOST_URL#unix://}" "$@" "http://d$p" ;;
    tcp://*)  curl -fsS "$@" "http://${HOST_URL#tcp://}$p" ;;
    *) return 1 ;;
  esac
}
answers() { HOST_URL=$1; [ "$(api /_ping --max-time 5 2>/dev/null)" = OK ]; }
find_engine() { # sets HOST_URL; an explicit DOCKER_HOST wins and is never replaced, then an explicit DOCKER_LAB
  local u sockets=("unix://$SOCK")
  if [ -n "${DOCKER_HOST:-}" ]; then answers "$DOCKER_HOST"; return; fi
  [ -n "$NAMED" ] || sockets=("unix:///run/docker.sock" "unix://$SOCK")
  for u in "${sockets[@]}"; do
    [ -S "${u#unix://}" ] && answers "$u" && return 0
  done
  return 1
}
apt_() { apt-get -qq -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@"; }
apt_retry() { apt_ "$@" 2>/dev/null || { say "apt-get update"; apt-get -qq update; apt_ "$@"; }; }

ours() { [ -r "/proc/$1/cmdline" ] && tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | grep -q -- "--data-root $LAB/data"; } # false for a zombie: its cmdline is empty
tools() { # dockerd, containerd, runc, docker-init, docker-proxy: the machine's, else a private copy of four packages
  if command -v dockerd >/dev/null && command -v containerd >/dev/null && command -v runc >/dev/null; then return; fi
  local p=$LAB/pkg
  if [ ! -e "$p/.done" ]; then
    say "fetch docker.io containerd runc tini (65 MB)"
    rm -rf "$p"; mkdir -p "$p/deb" "$p/root"
    ( cd "$p/deb" && apt_retry download docker.io containerd runc tini )
    say "unpack (250 MB)"
    printf '%s\n' "$p"/deb/*.deb | xargs -P "$(nproc)" -I{} dpkg-deb -x {} "$p/root"
    rm -rf "$p/deb"; : > "$p/.done"
  fi
  PATH=$p/root/usr/bin:$p/root/usr/sbin:$PATH; export PATH
  local missing; missing=$(ldd "$(command -v dockerd)" "$(command -v containerd)" "$(command -v runc)" | grep 'not found' || true)
  [ -z "$missing" ] || die "missing shared libraries (apt-get install libdevmapper1.02.1 libseccomp2 libsystemd0): $missing"
}
start() {
  [ "$(id -u)" = 0 ] || die "no engine answers and only root can start one"
  if ! grep -qE ' /sys/fs/cgroup(/[^ ]*)? cgroup2? ' /proc/mounts; then mount -t cgroup2 none /sys/fs/cgroup; fi
  tools
  # a dockerd that was killed leaves its pid file, and dockerd refuses to start while that pid exists, even as a zombie
  if [ -s "$PIDFILE" ]; then
    local old i; old=$(cat "$PIDFILE")
    if ours "$old"; then
      say "dockerd $old runs but does not answer yet: wait"
      for i in $(seq 100); do if answers "unix://$SOCK"; then return; fi; ours "$old" || break; sleep 0.2; done
      ! ours "$old" || die "dockerd $old hangs; see $LAB/dockerd.log"
    fi
  fi
  reap
  echo '{}' > "$LAB/daemon.json"                          # not the machine's own /etc/docker/daemon.json
  [ -e /etc/docker/key.json ] || : > "$LAB/.key-is-ours"   # dockerd 20.10 writes this file whatever it is told
  local net=(--bip 10.213.0.1/24 --default-address-pool base=10.214.0.0/16,size=24)
  [ "${DOCKER_LAB_BRIDGE:-}" = none ] && net=(--bridge=none)
  local driver
  for driver in ${DOCKER_LAB_DRIVER:-overlay2 vfs}; do
    rm -f "$SOCK"
    say "start dockerd ($driver)"
    # no iptables, no forwarding: ports still publish (docker-proxy), nothing leaves the machine.
    # 9>&-: a daemon that kept the lock's descriptor would hold the lock for ever.
    setsid nohup dockerd --config-file "$LAB/daemon.json" -H "unix://$SOCK" --data-root "$LAB/data" --exec-root "$LAB/exec" --pidfile "$PIDFILE" \
      --storage-driver "$driver" --iptables=false --ip6tables=false --ip-masq=false --ip-forward=false "${net[@]}" \
      --cgroup-parent "/$CG" --shutdown-timeout 5 --log-opt max-size=10m >"$LAB/dockerd.log" 2>&1 </dev/null 9>&- &
    local pid=$! i
    for i in $(seq 300); do
      if answers "unix://$SOCK"; then echo "$driver" > "$LAB/driver"; say "dockerd answers, pid $(cat "$PIDFILE")"; return; fi
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    say "dockerd with $driver did not come up:"; grep -E 'level=(error|fatal)|failed' "$LAB/dockerd.log" | tail -5 >&2 || true
    kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true
    grep -qiE 'graphdriver|storage-driver|storage driver|overlay' "$LAB/dockerd.log" || break
  done
  die "dockerd does not start; see $LAB/dockerd.log"
}

PKGS="bash dash coreutils sed grep findutils tar gzip diffutils patch procps util-linux mawk git python3-minimal python3.11"
SKIP='^(usrmerge|debconf|dpkg|perl|perl-base|perl-modules-.*|libperl5.*|lib.*-perl|ca-certificates|openssl|gcc-12-base|init-system-helpers|git-man|login|passwd|libpam.*|sensible-utils)_'
skeleton() { # skeleton <dir>: folders, links and users
  local R=$1 l
  mkdir -p "$R"/usr/{bin,sbin,lib,lib64} "$R"/{proc,sys,dev,tmp,workspace,root,run,etc,home,opt,var/tmp}
  for l in bin sbin lib lib64; do [ -e "$R/$l" ] || ln -s "usr/$l" "$R/$l"; done
  printf 'root:x:0:0:root:/:/bin/bash\nagent:x:1000:1000:agent:/workspace:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n' > "$R/etc/passwd"
  printf 'root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n' > "$R/etc/group"
  chmod 755 "$R"; chmod 1777 "$R/tmp" "$R/var/tmp"; chown 1000:1000 "$R/workspace"
}
rootfs_deb() {
  local R=$1 A=$LAB/img/archives d
  mkdir -p "$A/partial"; : > "$LAB/img/status"
  say "fetch the image's packages (50 MB)"
  # an empty dpkg status makes apt resolve the whole closure, as for a new system; nothing is installed here
  DEBIAN_FRONTEND=noninteractive apt_retry -y -d --no-install-recommends -o Dir::State::status="$LAB/img/status" -o Dir::Cache::archives="$A" install $PKGS
  say "unpack"
  skeleton "$R"
  for d in "$A"/*.deb; do
    [[ $(basename "$d") =~ $SKIP ]] && continue
    dpkg-deb --fsys-tarfile "$d" | tar -x --keep-directory-symlink -C "$R" --exclude './usr/share/doc' --exclude './usr/share/man' \
      --exclude './usr/share/locale' --exclude './usr/share/info' --exclude './usr/share/gitweb' --exclude './usr/share/lintian' --exclude './usr/share/bash-completion'
  done
  skeleton "$R"
  ln -sf mawk "$R/usr/bin/awk"; ln -sf python3 "$R/usr/bin/python"; ldconfig -r "$R"
  # without byte code every start of Python in a read-only root compiles again
  chroot "$R" /usr/bin/python3.11 -m compileall -q --invalidation-mode unchecked-hash -x "/(test|idlelib|lib2to3|turtledemo|ensurepip|distutils)/" /usr/lib/python3.11 >/dev/null 2>&1 || true
}
image() {
  if api "/images/$IMAGE/json" -o /dev/null 2>/dev/null; then say "image $IMAGE is there"; return; fi
  local R=$LAB/img/root
  rm -rf "$LAB/img"; mkdir -p "$R"
  rootfs_deb "$R"
  say "import $(du -sh "$R" | cut -f1)"
  # the API's import: no docker CLI needed
  tar -C "$R" --numeric-owner -c . | api "/images/create?fromSrc=-&repo=$REPO&tag=$TAG&changes=CMD%20%5B%22%2Fbin%2Fbash%22%5D&changes=WORKDIR%20%2Fwork&changes=ENV%20PATH%3D%2Fusr%2Flocal%2Fsbin%3A%2Fusr%2Flocal%2Fbin%3A%2Fusr%2Fsbin%3A%2Fusr%2Fbin%3A%2Fsbin%3A%2Fbin%20LANG%3DC.UTF-8" \
    -X POST -H 'Content-Type: application/x-tar' -T - >"$LAB/import.log" || die "import failed: $(tail -c 300 "$LAB/import.log")"
  api "/images/$IMAGE/json" -o /dev/null 2>/dev/null || die "import failed: $(tail -c 300 "$LAB/import.log")"
  rm -rf "$LAB/img"
  say "image $IMAGE imported"
}
reap() { # what a dockerd that was killed leaves: container processes, shims, containerd, mounts, cgroups, run files
  local p m
  for p in $(cat /dev/null $(find /sys/fs/cgroup/"$CG" /sys/fs/cgroup/*/"$CG" -name cgroup.procs 2>/dev/null) 2>/dev/null | sort -u); do kill -9 "$p" 2>/dev/null || true; done
  for p in $(grep -lzs -- "^$LAB/exec/" /proc/[0-9]*/cmdline | cut -d/ -f3); do
    case $(cat "/proc/$p/comm" 2>/dev/null) in containerd*|docker-proxy*) kill -9 "$p" 2>/dev/null || true ;; esac
  done
  for m in $(awk -v l="$LAB/" 'index($2,l)==1{print $2}' /proc/mounts | sort -r); do umount "$m" 2>/dev/null || umount -l "$m" || true; done
  for m in /sys/fs/cgroup/"$CG" /sys/fs/cgroup/*/"$CG"; do [ ! -d "$m" ] || find "$m" -depth -type d -exec rmdir {} + 2>/dev/null || true; done
  rm -rf "$LAB/exec" "$PIDFILE" "$SOCK"
}
stop() {
  local pid c; pid=$(cat "$PIDFILE" 2>/dev/null || echo 0)
  if ours "$pid"; then
    if answers "unix://$SOCK"; then
      for c in $(api '/containers/json?all=1' | grep -oE '"Id":"[0-9a-f]{64}","Names"' | cut -d'"' -f4); do api "/containers/$c?force=1&v=1" -X DELETE || true; done
      for c in $(api '/networks?filters=%7B%22type%22%3A%5B%22custom%22%5D%7D' | grep -oE '"Id":"[0-9a-f]{64}"' | cut -d'"' -f4); do api "/networks/$c" -X DELETE || true; done
    fi
    kill "$pid"; for _ in $(seq 300); do ours "$pid" || break; sleep 0.1; done
    ! ours "$pid" || die "dockerd $pid does not stop"
    [ "${DOCKER_LAB_BRIDGE:-}" = none ] || ip link del docker0 2>/dev/null || true
  fi
  reap; say "engine stopped"
}

mkdir -p "$LAB"; exec 9>"$LAB/lock"; flock 9
case ${1:-} in
  up|engine)
          find_engine || { [ -z "${DOCKER_HOST:-}" ] || die "DOCKER_HOST is set and does not answer"; start; }
          [ "$1" = engine ] || image
          echo "export DOCKER_HOST=$HOST_URL TEST_IMAGE=$IMAGE DOCKER_LAB=$LAB"; say "ready" ;;
  status) if find_engine; then api /version | head -c 300; echo; api "/images/$IMAGE/json" -o /dev/null && echo "$IMAGE present at $HOST_URL"; else echo "no engine answers"; exit 1; fi ;;
  down)   stop ;;
  purge)  stop; [ ! -e "$LAB/.key-is-ours" ] || rm -f /etc/docker/key.json
          rmdir /etc/docker /run/docker/plugins /run/docker /run/containerd/s /run/containerd 2>/dev/null || true
          rm -rf "$LAB" ;;
  *)      die "usage: $0 up|engine|status|down|purge" ;;
esac
