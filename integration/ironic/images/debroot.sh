# Sourced by the build script beside it: a root file system out of Debian packages
# that are unpacked and not configured. dpkg and the maintainer scripts would cost
# several times the time, and a container that runs one program needs only the few
# lines below of what they do. Nothing can be installed into it afterwards.
# shellcheck shell=bash

# mmdebstrap runs python3 for each package: the system's own, not through a version
# manager's wrapper.
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH

die() {
	echo "$(basename "$0"): $*" >&2
	exit 1
}

# need PACKAGE COMMAND...: installs the package where one of the commands is missing
# and this machine has apt.
need() {
	local package=$1 command
	shift
	for command in "$@"; do
		command -v "$command" >/dev/null && continue
		command -v apt-get >/dev/null || die "needs $command, and there is no apt to install it with"
		echo "installing $package for $command"
		DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package" >"$work/apt.log" 2>&1 ||
			{ apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$package"; } >"$work/apt.log" 2>&1 ||
			{ tail -5 "$work/apt.log" >&2; die "apt-get install $package failed"; }
	done
}

# prepare makes the folder of work, $work, and finds the archive, $mirror.
prepare() {
	docker version >/dev/null 2>&1 || die "no answer from the Docker engine"
	[ "$(id -u)" = 0 ] || die "needs root to unpack packages with their owners: run it once as root, the image stays"
	work=$(mktemp -d)
	trap 'rm -rf "$work"' EXIT
	need mmdebstrap mmdebstrap
	need curl curl
	need xz-utils xz
	mirror=${MIRROR:-$(apt-get indextargets --format '$(SITE) $(CREATED_BY)' | awk '$2 == "Packages" && $1 ~ /\/debian\/?$/ && !site {site = $1} END {print site}')}
	[ -n "$mirror" ] || die "apt knows no Debian archive: set MIRROR to the address of one"
}

# release_date sets all time stamps to that of the archive's Release file, so that
# the same archive gives the same root file system.
release_date() {
	curl -sSL --retry 3 -w '%{http_code}' "$mirror/dists/$suite/InRelease" -o "$work/InRelease" >"$work/code" || die "the Debian archive does not answer: set MIRROR to another"
	[ "$(cat "$work/code")" = 200 ] || die "the Debian archive has no suite $suite (HTTP $(cat "$work/code"))"
	SOURCE_DATE_EPOCH=$(date -d "$(sed -n 's/^Date: //p;/^Date: /q' "$work/InRelease")" +%s)
	export SOURCE_DATE_EPOCH
}

# fetch_deb PACKAGE: $work/PACKAGE.deb, without what it depends on
fetch_deb() {
	[ -s "$work/Packages" ] || curl -fsSL --retry 3 "$mirror/dists/$suite/main/binary-amd64/Packages.xz" | xz -dc >"$work/Packages"
	local file
	file=$(awk -v RS= -v p="Package: $1" 'index($0, p "\n") == 1 && !n++' "$work/Packages" | sed -n 's/^Filename: //p')
	[ -n "$file" ] || die "$suite has no package $1"
	curl -fsSL --retry 3 "$mirror/$file" -o "$work/$1.deb"
}

essentials=base-files,base-passwd,netbase,bash,dash,coreutils,debianutils,findutils,grep,gzip,hostname,libc-bin,mawk,sed,tar,util-linux,mount,procps,ca-certificates

# debroot PACKAGES: $work/root with these packages and what they depend on
debroot() {
	release_date
	local merged=()
	[ "$suite" != bookworm ] || merged=(--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr)
	# Of the moving suites the archive's Release file may have expired.
	nice -n 5 mmdebstrap --quiet --mode=root --variant=extract --format=directory --aptopt='Acquire::Check-Valid-Until "false"' \
		--aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' --aptopt='Acquire::Retries "3"' \
		"${merged[@]}" --include="$essentials,$1" "$suite" "$work/root" "deb $mirror $suite main" || die "mmdebstrap failed"
	list_packages >"$work/packages"
	(
		cd "$work/root"
		cp "$work/packages" usr/share/metalbus.packages
		rm -rf usr/share/{man,info,locale,fonts,javascript} usr/lib/python3/dist-packages/*/tests var/lib/apt/lists/* var/cache/apt/* dev/*
		find usr/share/doc -type f ! -name copyright -delete
		find usr/share/doc -type d -empty -delete
		configure
	)
}

# list_packages prints source packages and versions, from the changelogs: no dpkg
# database is left to ask.
list_packages() {
	(cd "$work/root" && python3 - <<-'PY'
		import glob, gzip, re
		found = set()
		for name in glob.glob('usr/share/doc/*/changelog*.gz'):
		    with gzip.open(name, 'rt', errors='replace') as f:
		        m = re.match(r'(\S+) \((\S+)\)', f.readline())
		    if m and ('Debian' in name or '-' not in m[2]):
		        found.add(m[1] + ' ' + m[2])
		print('\n'.join(sorted(found)))
	PY
	)
}

# version_of SOURCE: its version in the root
version_of() { sed -n "s/^$1 //p" "$work/packages"; }

# configure does what the maintainer scripts would have done, in the folder of the
# root.
configure() {
	cp usr/share/base-passwd/passwd.master etc/passwd
	cp usr/share/base-passwd/group.master etc/group
	mkdir -p etc/ssl/certs tmp run proc sys usr/local/bin usr/local/sbin
	cat usr/share/ca-certificates/mozilla/*.crt >etc/ssl/certs/ca-certificates.crt
	[ -e etc/nsswitch.conf ] || echo 'hosts: files dns' >etc/nsswitch.conf
	ln -sf mawk usr/bin/awk
	[ -e usr/bin/sh ] || ln -s dash usr/bin/sh
	chmod 1777 tmp
	chroot . /sbin/ldconfig
	rm -f var/cache/ldconfig/aux-cache
}

# import_root IMAGE [--change X]...: makes an image of $work/root
import_root() {
	local image=$1
	shift
	tar -C "$work/root" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --clamp-mtime --numeric-owner -c . | docker import "$@" - "$image" >/dev/null
}
