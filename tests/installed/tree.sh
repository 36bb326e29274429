# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# tree.sh - to be sourced: longpole as it is installed, for tests of that.

# installed_tree DIRECTORY - installs the build below it, in a directory with a blank and a colon in its name, moved away from where it was
# configured for, and read-only; says where the program is.
installed_tree() {
	local odd="$1/a blank, a:colon"
	DESTDIR="$odd" meson install -C "$LONGPOLE_BUILD" --no-rebuild --quiet >"$1/log" 2>&1 || { cat "$1/log" >&2; return 1; }
	find "$odd" -path '*/bin/longpole'
	chmod -R a-w "$odd"
}
# installed_tree_remove DIRECTORY - and all that is in it.
installed_tree_remove() {
	chmod -R u+w "$1"
	rm -rf "$1"
}
# as_other COMMAND... - by another user, if we are root.
as_other() {
	if ((EUID)); then
		"$@"
	else
		setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"
	fi
}
